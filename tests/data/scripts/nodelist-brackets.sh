#!/bin/bash
#SBATCH --nodelist=h[1-2]
#SBATCH -n 4
srun ./train
