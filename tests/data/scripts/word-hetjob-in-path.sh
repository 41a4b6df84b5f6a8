#!/bin/bash
#SBATCH --output=out/hetjob/%j.out
#SBATCH --job-name=hetjob-test
#SBATCH --ntasks=2
srun ./train
