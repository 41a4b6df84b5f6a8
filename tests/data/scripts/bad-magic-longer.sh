#!/bin/bash
#SBATCHES of work
srun ./train
