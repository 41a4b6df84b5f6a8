#!/bin/bash
#SLURM --ntasks=2
#SBATCH --time=9
srun ./train
