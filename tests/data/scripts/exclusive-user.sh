#!/bin/bash
#SBATCH --exclusive=user
#SBATCH --exclude=h[1,4]
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
srun ./train
