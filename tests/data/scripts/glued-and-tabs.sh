#!/bin/bash
#SBATCH-N2
#SBATCH	--ntasks-per-node=2
#SBATCH 	 --time=15	
#SBATCH--cpus-per-task=1
srun ./train
