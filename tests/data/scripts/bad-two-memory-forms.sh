#!/bin/bash
#SBATCH --mem=4G
#SBATCH --ntasks=2
#SBATCH --mem-per-cpu=1G
srun ./train
