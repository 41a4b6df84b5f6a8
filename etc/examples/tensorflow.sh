#!/bin/bash
# TensorFlow, as TF_CONFIG says: with servers ParameterServerStrategy, without MultiWorkerMirroredStrategy.
#
#     sbatch --dt-tune=tensorflow.json tensorflow.sh
#     sbatch --dt-tune --dt-ps=0 --dt-workers=1-4 tensorflow.sh
#
# tensorflow.json asks for a chief, the task that leads servers and workers.
#SBATCH --job-name=tensorflow
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=1
#SBATCH --time=10:00

exec srun "${PYTHON:-python3}" "${SLURM_SUBMIT_DIR:-$(dirname "$0")}/tensorflow_train.py"
