#!/bin/bash
#SBATCH: --ntasks=2
srun ./train
