#!/bin/bash
#SBATCH -N2 -n8 -c1
#SBATCH -pmain -t30 -J mpi-ring
#SBATCH -O -x h4
srun --mpi=pmi2 ./ring
