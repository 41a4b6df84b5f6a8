#!/bin/bash
#SBATCH --time=1-02:03:04
#SBATCH --time-min=90:30
#SBATCH --begin=now+1hour
#SBATCH --ntasks=1
srun ./train
