#!/bin/bash
#SBATCH --ntasks=4

srun python3 train.py "$@"
