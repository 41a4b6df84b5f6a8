#!/bin/bash
#SBATCH -output=train.out
#SBATCH --ntasks=2
srun ./train
