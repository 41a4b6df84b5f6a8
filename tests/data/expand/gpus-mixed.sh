#!/bin/bash
#SBATCH --ntasks=3
#SBATCH --gres=gpu:k80:2,gpu:v100:1

srun python3 train.py "$@"
