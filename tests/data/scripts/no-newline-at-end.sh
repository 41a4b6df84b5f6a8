#!/bin/bash
hostname
#SBATCH --ntasks=2