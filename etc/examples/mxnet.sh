#!/bin/bash
# MXNet's parameter servers, as DMLC_* says. mxnet.json asks for the scheduler, through which servers and workers meet.
#
#     sbatch --dt-tune=mxnet.json mxnet.sh
#
# BytePS is the same with "srun bpslaunch python3 train.py" as the last line.
#SBATCH --job-name=mxnet
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=1
#SBATCH --time=10:00

exec srun "${PYTHON:-python3}" "${SLURM_SUBMIT_DIR:-$(dirname "$0")}/mxnet_train.py"
