#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks=4
#SBATCH --exclusive

srun python3 train.py "$@"
