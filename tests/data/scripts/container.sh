#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --container-image=nvcr.io#nvidia/pytorch:23.10-py3
#SBATCH --container-name='a#b'
#SBATCH --container-mounts=/data:/data,/scratch:/scratch
srun python train.py
