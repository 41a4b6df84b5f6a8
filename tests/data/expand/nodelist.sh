#!/bin/bash
#SBATCH --nodelist=h[1-2]
#SBATCH --ntasks=4

srun python3 train.py "$@"
