#!/bin/bash
#SBATCH --ntask=2
srun ./train
