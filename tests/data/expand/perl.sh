#!/usr/bin/perl -w
#SBATCH --ntasks=2 --time=5
#PBS -l nodes=9
system("srun", "hostname");
