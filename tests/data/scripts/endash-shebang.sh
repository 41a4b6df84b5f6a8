#!/bin/bash –l
#SBATCH --ntasks=1
#SBATCH --nodes=1
hostname
