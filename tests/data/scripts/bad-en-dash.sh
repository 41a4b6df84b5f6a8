#!/bin/bash
#SBATCH --ntasks=2
#SBATCH –-nodes=2
srun ./train
