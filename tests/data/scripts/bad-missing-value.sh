#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time
srun ./train
