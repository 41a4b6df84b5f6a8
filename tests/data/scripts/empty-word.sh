#!/bin/bash
#SBATCH --ntasks=2 "" --time=99
#SBATCH --comment=""
srun ./train
