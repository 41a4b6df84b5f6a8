#!/bin/bash
#SBATCH --export-file=97
srun ./train
