#!/bin/bash
# All-reduce training started by torchrun: each task is one torchrun, which starts one process.
#
#     sbatch torchrun.sh
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-4 torchrun.sh
#
# In a trial torchrun finds how many torchruns there are and where they meet in PET_NNODES, PET_RDZV_BACKEND and
# PET_RDZV_ENDPOINT, which are the defaults of its options; outside of one they are set here.
#SBATCH --job-name=torchrun
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
if [ -z "${DT_TRIAL_DIR-}" ]; then
    PET_RDZV_ENDPOINT=$(hostname):$((10000 + SLURM_JOB_ID % 20000))
    export PET_RDZV_ENDPOINT PET_RDZV_BACKEND=c10d PET_NNODES=$SLURM_NTASKS
fi
# torchrun of PyTorch 1.13 fails under Python 3.11 (Debian 12) where it is to redirect nothing.
export PET_REDIRECTS=${PET_REDIRECTS:-1} PET_TEE=${PET_TEE:-1}
exec srun "${PYTHON:-python3}" -m torch.distributed.run "$dir/ddp.py" "$@"
