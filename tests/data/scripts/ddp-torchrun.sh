#!/bin/bash
#SBATCH --job-name=ddp-resnet        # name in the queue
#SBATCH --nodes=2                    # machines
#SBATCH --ntasks-per-node=1          # one launcher each
#SBATCH --cpus-per-task=4            # for the data loaders
#SBATCH --gpus-per-node=2
#SBATCH --time=02:00:00              # (HH:MM:SS)
#SBATCH --output=ddp-%j.out

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=2 --rdzv_id="$SLURM_JOB_ID" \
    --rdzv_backend=c10d --rdzv_endpoint="$head:29500" train.py --epochs 10
