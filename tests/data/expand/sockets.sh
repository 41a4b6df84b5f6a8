#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --sockets-per-node=2
#SBATCH --cores-per-socket=4
#SBATCH --ntasks-per-core=1
#SBATCH --ntasks-per-socket=1
#SBATCH --hint=nomultithread
#SBATCH --distribution=cyclic:block
#SBATCH --mincpus=4

srun python3 train.py "$@"
