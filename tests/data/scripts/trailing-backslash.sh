#!/bin/bash
#SBATCH --ntasks=2 \
#SBATCH --time=20 \
#SBATCH --partition=main
srun ./train
