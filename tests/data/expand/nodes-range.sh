#!/bin/bash
#SBATCH -N2-4
#SBATCH -n8
#SBATCH --tmp=20G

srun python3 train.py "$@"
