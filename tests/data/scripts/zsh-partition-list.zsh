#!/bin/zsh
#SBATCH --partition=main,short
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
srun ./train
