#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=2

#SBATCH hetjob
#SBATCH --ntasks=3
srun --het-group=0,1 ./train
