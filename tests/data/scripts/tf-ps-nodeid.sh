#!/bin/sh
#SBATCH -N 4
#SBATCH -n 4
#SBATCH --distribution=cyclic
#!/bin/bash
#SBATCH --time=30

# the first node serves, the others learn
if [ "${SLURM_NODEID:-0}" -eq 0 ]; then role=ps; else role=worker; fi
srun python train.py --role "$role"
