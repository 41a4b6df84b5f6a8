#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --sockets-per-node=2
#SBATCH --gpus-per-socket=1

srun python3 train.py "$@"
