#!/usr/bin/env python3
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=3
#SBATCH --time=5
"""A batch script need not be a shell script."""
#SBATCH --ntasks=7
import os

print(os.environ["SLURM_JOB_ID"])
