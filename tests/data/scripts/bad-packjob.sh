#!/bin/bash
#SBATCH --ntasks=1  
#SBATCH packjob   
#SBATCH --ntasks=3
srun --pack-group=0,1 ./train
