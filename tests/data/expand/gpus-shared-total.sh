#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gpus=1
#SBATCH --cpus-per-gpu=8
#SBATCH --mem-per-gpu=8G

srun python3 train.py "$@"
