#!/bin/bash
#SBATCH --job-name=entraînement   # nom de la tâche
#SBATCH --ntasks=2                # 使用两个任务
#SBATCH --time=10                 # минут
srun ./train
