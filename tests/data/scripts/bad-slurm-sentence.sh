#!/bin/bash
#SLURM settings follow
#SBATCH --ntasks=2
srun ./train
