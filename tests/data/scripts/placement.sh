#!/bin/bash
#SBATCH --constraint="fast|slow"
#SBATCH --licenses=dtlic:1
#SBATCH --distribution=block:block
#SBATCH --contiguous --nice=10
#SBATCH --mincpus=2 --tmp=0
#SBATCH --nodes=1-3 --ntasks=2
#SBATCH --use-min-nodes --spread-job
#SBATCH --switches=1@10
srun ./train
