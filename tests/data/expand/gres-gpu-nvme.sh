#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --gres=gpu:k80:2,nvme:1

srun python3 train.py "$@"
