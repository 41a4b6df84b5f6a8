#!/bin/bash
#SBATCH --ntasks=3
#SBATCH --time=7