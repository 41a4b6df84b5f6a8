#!/bin/bash
#SBATCH --quiet
#SBATCH --verbose
#SBATCH --help
#SBATCH --wrap=hostname
#SBATCH --ntasks=2
srun ./train
