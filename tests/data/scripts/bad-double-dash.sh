#!/bin/bash
#SBATCH --ntasks=2 -- --time=3
srun ./train
