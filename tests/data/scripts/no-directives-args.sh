#!/bin/bash
# usage: sbatch no-directives-args.sh NUM_PS NUM_WORKERS
num_ps=$1
num_workers=$2
srun -n "$((num_ps + num_workers))" python train.py "$num_ps"
