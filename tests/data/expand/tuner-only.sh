#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --begin=now+1hour
#SBATCH --dependency=singleton
#SBATCH --hold
#SBATCH --wait
#SBATCH --deadline=2030-01-01
#SBATCH --requeue
#SBATCH --input=answers.txt
#SBATCH --output=%x-%j.out
#SBATCH --error=%x-%j.err
#SBATCH --open-mode=append
#SBATCH --kill-on-invalid-dep=yes

srun python3 train.py "$@"
