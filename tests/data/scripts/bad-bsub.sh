#!/bin/bash
#SBATCH --time=10
mpirun ./train
#BSUB -n 4
