#!/bin/bash
#SBATCH --time=2h
srun ./train
