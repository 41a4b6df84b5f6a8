#!/bin/bash
#SBATCH --ntasks=0
srun ./train
