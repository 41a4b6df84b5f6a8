#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --cpu-per-tasks 2
srun ./train
