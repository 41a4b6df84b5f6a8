#!/bin/bash
#SBATCH --node=2
srun ./train
