#!/bin/bash
#SBATCH --hold=1
srun ./train
