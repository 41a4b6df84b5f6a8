#!/bin/bash
#SBATCH --dependency=singleton
#SBATCH --comment=a:b:c
#SBATCH --ntasks=2 -t 0:30:00
srun ./train
