#!/bin/bash
#SBATCH --ntasks–per-node=2
srun ./train
