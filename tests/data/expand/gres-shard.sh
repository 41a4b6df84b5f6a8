#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gres=shard:2,nvme:1

srun python3 train.py "$@"
