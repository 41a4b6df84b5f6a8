#!/bin/bash
#SBATCH --test-only
srun ./train
