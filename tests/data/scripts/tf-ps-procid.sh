#!/bin/bash
#SBATCH --ntasks=3
#SBATCH --nodes=3
#SBATCH --cpus-per-task=2
#SBATCH --partition=main
srun bash -c '
if [ "$SLURM_PROCID" = 0 ]; then
    python train.py --job_name ps --task_index 0
else
    python train.py --job_name worker --task_index $((SLURM_PROCID - 1))
fi'
