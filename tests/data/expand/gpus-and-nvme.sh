#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --gres=nvme:1
#SBATCH --gres-flags=enforce-binding

srun python3 train.py "$@"
