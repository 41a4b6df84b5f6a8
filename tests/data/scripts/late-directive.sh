#!/bin/bash
#SBATCH --ntasks=2

set -e
#SBATCH --time=00:30:00
#SBATCH --mem=16G
srun ./train
