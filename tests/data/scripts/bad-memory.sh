#!/bin/bash
#SBATCH --mem=4GiB
srun ./train
