#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --gpu-bind=none
srun python train.py
