#!/bin/bash
#SBATCH --ntasks=2 : --ntasks=1
srun ./train
