#!/bin/bash
#SBATCH --output=$HOME/logs/%j.out
#SBATCH --job-name="run-$4"
#SBATCH --comment='costs 5$ only'
#SBATCH --ntasks=1
srun ./train "$@"
