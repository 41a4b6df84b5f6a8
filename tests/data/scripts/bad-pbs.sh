#!/bin/bash
#PBS -l nodes=2:ppn=3
#SBATCH --time=10
mpirun ./train
