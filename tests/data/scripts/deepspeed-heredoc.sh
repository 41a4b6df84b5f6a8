#!/bin/bash
#SBATCH --job-name=gpt2-ds
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time 00:10:00
#SBATCH --account ajs@gpu
#SBATCH --hint=nomultithread

cat > ds_config.json <<EOF
{ "train_batch_size": 64 }
EOF
cat > resubmit.sh <<-'END'
#SBATCH --nodes=99
	END
srun deepspeed pretrain.py --deepspeed_config ds_config.json
