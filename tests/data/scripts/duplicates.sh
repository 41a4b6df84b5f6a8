#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --time=10
#SBATCH -n 2
#SBATCH --mail-type=BEGIN
##SBATCH --mail-type=END,FAIL
#SBATCH --exclusive
#SBATCH --oversubscribe
#SBATCH --requeue
#SBATCH --no-requeue
#SBATCH --time=25
srun ./train
