#!/bin/bash
#SBATCH --ntasks-per-n=2
#SBATCH --nodes=1
#SBATCH --cpus-per-t=2
#SBATCH --part=main
#SBATCH --time-m=3 --propag
#SBATCH --exclus
srun ./train
