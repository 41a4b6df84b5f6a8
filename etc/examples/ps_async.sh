#!/bin/bash
# Asynchronous training with parameter servers.
#
#     sbatch ps_async.sh              1 server (the first task) and 2 workers
#     sbatch --dt-tune --dt-ps=0-2 --dt-workers=1-4 ps_async.sh
#     sbatch --dt-tune --dt-ps=0-2 --dt-workers=1-4 --dt-param=lr=0.005..0.2:log ps_async.sh
#     sbatch --dt-tune=spec.json ps_async.sh
#
# Time to an accuracy, rather than to the end: --dt-target='accuracy>=0.95'.
#SBATCH --job-name=ps_async
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=800M
#SBATCH --time=10:00

# The programs lie where the job was submitted.
dir=${SLURM_SUBMIT_DIR:-$(dirname "$0")}
if [ ! -r "$dir/ps_train.py" ]; then
    echo "$0: $dir/ps_train.py is missing; submit from the folder of the examples" >&2
    exit 2
fi
# srun by itself does not take this over from sbatch in Slurm 22.05 and 23.02.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
# exec: so srun itself gets the job's signals, and passes them on to the tasks, which save and stop.
exec srun "${PYTHON:-python3}" "$dir/ps_train.py" --mode async "$@"
