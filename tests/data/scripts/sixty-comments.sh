#!/bin/sh
# line 2 of a preface: replace <hours> below
# line 3 of a preface: replace <queue> below
# line 4 of a preface: replace <hours> below
# line 5 of a preface: replace <queue> below
# line 6 of a preface: replace <hours> below
# line 7 of a preface: replace <queue> below
# line 8 of a preface: replace <hours> below
# line 9 of a preface: replace <queue> below
# line 10 of a preface: replace <hours> below
# line 11 of a preface: replace <queue> below
# line 12 of a preface: replace <hours> below
# line 13 of a preface: replace <queue> below
# line 14 of a preface: replace <hours> below
# line 15 of a preface: replace <queue> below
# line 16 of a preface: replace <hours> below
# line 17 of a preface: replace <queue> below
# line 18 of a preface: replace <hours> below
# line 19 of a preface: replace <queue> below
# line 20 of a preface: replace <hours> below
# line 21 of a preface: replace <queue> below
# line 22 of a preface: replace <hours> below
# line 23 of a preface: replace <queue> below
# line 24 of a preface: replace <hours> below
# line 25 of a preface: replace <queue> below
# line 26 of a preface: replace <hours> below
# line 27 of a preface: replace <queue> below
# line 28 of a preface: replace <hours> below
# line 29 of a preface: replace <queue> below
# line 30 of a preface: replace <hours> below
# line 31 of a preface: replace <queue> below
# line 32 of a preface: replace <hours> below
# line 33 of a preface: replace <queue> below
# line 34 of a preface: replace <hours> below
# line 35 of a preface: replace <queue> below
# line 36 of a preface: replace <hours> below
# line 37 of a preface: replace <queue> below
# line 38 of a preface: replace <hours> below
# line 39 of a preface: replace <queue> below
# line 40 of a preface: replace <hours> below
# line 41 of a preface: replace <queue> below
# line 42 of a preface: replace <hours> below
# line 43 of a preface: replace <queue> below
# line 44 of a preface: replace <hours> below
# line 45 of a preface: replace <queue> below
# line 46 of a preface: replace <hours> below
# line 47 of a preface: replace <queue> below
# line 48 of a preface: replace <hours> below
# line 49 of a preface: replace <queue> below
# line 50 of a preface: replace <hours> below
# line 51 of a preface: replace <queue> below
# line 52 of a preface: replace <hours> below
# line 53 of a preface: replace <queue> below
# line 54 of a preface: replace <hours> below
# line 55 of a preface: replace <queue> below
# line 56 of a preface: replace <hours> below
# line 57 of a preface: replace <queue> below
# line 58 of a preface: replace <hours> below
# line 59 of a preface: replace <queue> below
# line 60 of a preface: replace <hours> below
# line 61 of a preface: replace <queue> below
#SBATCH --job-name="<jobname>"
#SBATCH --ntasks=4
#SBATCH --output="slurm-%j.out"

export MAGPIE_LIKE=yes
srun ./train
