#!/bin/bash
#SBATCH --export=ALL,LR=0.1,NAME="two words",PATHS=/a:/b
#SBATCH --ntasks=2
srun ./train
