#!/bin/bash
#SBATCH -M other
srun ./train
