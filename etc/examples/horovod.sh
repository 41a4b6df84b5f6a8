#!/bin/bash
# Horovod over MPI: srun starts the ranks, which find each other by PMI; no variable is needed.
#
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-8 horovod.sh
#
# The kind of PMI is that of the MPI which Horovod was built with; srun --mpi=list shows what there is.
#SBATCH --job-name=horovod
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=10:00

export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmix}
exec srun "${PYTHON:-python3}" "${SLURM_SUBMIT_DIR:-$(dirname "$0")}/horovod_train.py"
