#!/bin/bash
#SBATCH --comment="two words, a # sign and \"quotes\""
#SBATCH --job-name='it is "quoted"'
#SBATCH --output=out"put dir"/%j.txt
#SBATCH --mail-user=a\#b@example.org
#SBATCH --wckey=back\\slash
#SBATCH --ntasks=2#and the rest is a comment --ntasks=9
srun ./train
