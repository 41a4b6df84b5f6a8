#!/bin/bash
#PBS -l nodes=2:ppn=3
#PBS -N old_name
#SBATCH --ignore-pbs
#SBATCH --ntasks=2
srun ./train
