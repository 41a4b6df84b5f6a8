#!/bin/bash
#SBATCH --nodes=2 (number of machines)
srun ./train
