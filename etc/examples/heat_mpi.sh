#!/bin/bash
# A heat equation solved with MPI: no machine learning, but a number of tasks to choose.
#
#     sbatch heat_mpi.sh
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-8 heat_mpi.sh
#
# Set SLURM_MPI_TYPE if your MPI needs another kind of srun --mpi than pmi2 (MPICH and relatives) to
# start, or edit it here; srun --mpi=list shows the kinds.
#SBATCH --job-name=heat_mpi
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=800M
#SBATCH --time=10:00

# The source lies where the job was submitted.
dir=${SLURM_SUBMIT_DIR:-$(dirname "$0")}
if [ ! -r "$dir/heat_mpi.c" ]; then
    echo "$0: $dir/heat_mpi.c is missing; submit from the folder of the examples" >&2
    exit 2
fi
# srun by itself does not take this over from sbatch in Slurm 22.05 and 23.02.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
# Built anew for each job, so that jobs that run at the same time never share a file being written.
program=${DT_TRIAL_DIR:-$dir}/heat_mpi.${SLURM_JOB_ID:-$$}
trap 'rm -f "$program"' EXIT
"${MPICC:-mpicc}" -O3 -o "$program" "$dir/heat_mpi.c" || exit

export SLURM_MPI_TYPE=${SLURM_MPI_TYPE:-pmi2}
srun "$program" "$@"
