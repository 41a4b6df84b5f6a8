#!/bin/bash
#SBATCH --time=10 minutes
srun ./train
