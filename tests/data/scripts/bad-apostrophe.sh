#!/bin/bash
#SBATCH --ntasks=2 # fine: it's a comment
#SBATCH --comment=it's
srun ./train
