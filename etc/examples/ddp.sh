#!/bin/bash
# All-reduce training (PyTorch DistributedDataParallel on gloo): workers only.
#
#     sbatch ddp.sh
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-4 ddp.sh
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-4 --dt-param=optimizer={sgd,adam} ddp.sh
#SBATCH --job-name=ddp
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=800M
#SBATCH --time=10:00

# The programs lie where the job was submitted.
dir=${SLURM_SUBMIT_DIR:-$(dirname "$0")}
if [ ! -r "$dir/ddp.py" ]; then
    echo "$0: $dir/ddp.py is missing; submit from the folder of the examples" >&2
    exit 2
fi
# srun by itself does not take this over from sbatch in Slurm 22.05 and 23.02.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
# exec: so srun itself gets the job's signals, and passes them on to the tasks, which save and stop.
exec srun "${PYTHON:-python3}" "$dir/ddp.py" "$@"
