#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --export=NONE
#SBATCH --get-user-env

srun python3 train.py "$@"
