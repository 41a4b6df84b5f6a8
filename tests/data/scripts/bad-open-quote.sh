#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --comment="no end
srun ./train
