#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --ntasks=2
#SBATCH --mem-per-cpu=800M
#SBATCH --time=10

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT=29500
srun python3 digits.py --lr "${DT_PARAM_lr:-0.01}"
