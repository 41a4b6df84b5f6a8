#!/bin/bash
#SBATCH -Z
srun ./train
