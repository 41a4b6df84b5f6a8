#!/bin/bash
##SBATCH --ntasks=64
 #SBATCH --ntasks=32
# SBATCH --ntasks=16
#sbatch --ntasks=8
# SBATCH lines follow; see also #SBATCH --ntasks=5 in the manual
#SBATCH --ntasks=2
srun ./train
