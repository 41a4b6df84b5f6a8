#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --job-name
#SBATCH --time=99
srun ./train
