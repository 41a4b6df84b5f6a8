#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gpus=v100:4
#SBATCH --cpus-per-task=2

srun python3 train.py "$@"
