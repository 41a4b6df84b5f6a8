#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --licenses=matlab:2,dtlic:1
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=me@example.org
#SBATCH --reservation=course
#SBATCH --account=ml
#SBATCH --qos=high
#SBATCH --constraint="fast&gpu"
#SBATCH --time=1-00:00:00
#SBATCH --time-min=12:00:00
#SBATCH --nice=100
#SBATCH --wckey=thesis
#SBATCH --exclude=h[7-8]
#SBATCH --comment="a study, with # and \"quotes\""

srun python3 train.py "$@"
