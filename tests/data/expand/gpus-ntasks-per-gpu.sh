#!/bin/bash
#SBATCH --gpus=a100:2
#SBATCH --ntasks-per-gpu=2
#SBATCH --cpus-per-task=2

srun python3 train.py "$@"
