#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=16
#SBATCH --overcommit

srun python3 train.py "$@"
