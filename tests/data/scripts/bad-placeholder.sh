#!/bin/bash
#SBATCH --cpus-per-task=<cpus>
srun ./train
