#!/usr/bin/env bats
# What the user gave to sbatch, in whatever form, reaches the jobs of the trials: looked at in Slurm.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    cluster_up --nodes 4 --cpus 4 --mem 4096 --gpus k80:2
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    cd "$BATS_TEST_TMPDIR"
    unset "${!SBATCH_@}"
}

teardown() {
    [ -n "${DT_CLUSTER_MISSING-}" ] || scancel --user="$(id -un)" # what a failed test left
}

# script [LINE...]: writes train.sh with these lines behind its shebang; every task prints its role.
script() {
    {
        echo '#!/bin/bash'
        printf '%s\n' "$@"
        cat <<END
printf 'arg <%s>\n' "\$@"
printf 'environment %s %s\n' "\${COLOUR-none}" "\${SHAPE-none}"
pwd
srun sh -c 'echo "task \$DT_ROLE \$DT_ROLE_RANK \${CUDA_VISIBLE_DEVICES-none}"
$together' || exit
END
    } >train.sh
    chmod +x train.sh
}

# finish: waits for the study; sets trials to the jobs of the trials, of het jobs the first
# components, and others to the other components.
#
# study [OPTION...] SCRIPT...: submits a study of three configurations; sets id.
study() {
    id=$(sbatch --parsable --output=study.out --dt-tune --dt-max-configs=3 --dt-repeats=0 "$@")
}

finish() {
    wait_for 120 job_ended "$id" || {
        cat study.out
        squeue
        return 1
    }
    grep -q '^cost of the search: .*(0 failed)' "$(scontrol -o show job "$id" | sed -E 's/.* StdOut=(\S+).*/\1/')" || {
        cat study.out
        return 1
    }
    local all
    all=$(scontrol -o show job | grep -E " JobName=[^ ]*\.dt-$id-") || {
        cat study.out
        return 1
    }
    trials=$(grep -v ' HetJobOffset=[1-9]' <<<"$all")
    others=$(grep ' HetJobOffset=[1-9]' <<<"$all") || true
}

# output N: what trial N printed.
output() {
    cat "dt-tune-$id/trials/$(printf %04d "$1")/output.log"
}

# each JOBS N TEXT...: there are N jobs, and every one shows all the texts.
each() {
    local jobs=$1 n=$2 text line
    shift 2
    if [ "$(grep -c . <<<"$jobs")" != "$n" ]; then
        echo "expected $n jobs, found:"
        echo "$jobs"
        return 1
    fi
    while read -r line; do
        for text; do
            if [[ " $line " != *" $text "* ]]; then
                echo "lacks $text: $line"
                return 1
            fi
        done
    done <<<"$jobs"
}

@test "#SBATCH lines: both components have them, licences and mail only the first" {
    script '#SBATCH --partition=short --time=7' '#SBATCH --constraint="fast|slow"' \
        '#SBATCH --licenses=dtlic:1 --mail-type=END,FAIL --mail-user=me@example.org' \
        '#SBATCH --reservation=course --exclude=h4 --nice=10' \
        '#SBATCH --comment="two words, # and \"quotes\""' '#SBATCH -n 2 --cpus-per-task=2' \
        '#SBATCH --mem-per-cpu=300M --signal=B:USR1@120 --tmp=100'
    scontrol create reservationname=course nodes=h1,h2,h3 starttime=now duration=60 users="$(id -un)"
    study --dt-ps=1 --dt-workers=1-3 --dt-layout=het train.sh
    finish
    scontrol delete reservationname=course
    local common=(Partition=short TimeLimit=00:07:00 'Features=fast|slow' Reservation=course ExcNodeList=h4
        'Comment=two words, # and "quotes"' CPUs/Task=2 MinMemoryCPU=300M MinTmpDiskNode=100M
       )
    each "$trials" 3 "${common[@]}" Licenses=dtlic:1 MailUser=me@example.org MailType=END,FAIL
    each "$others" 2 "${common[@]}" 'Licenses=(null)'
    [[ $others != *MailUser=me* ]]
    [ "$(grep -oE ' NumTasks=[0-9]+' <<<"$trials" | xargs)" = "NumTasks=2 NumTasks=1 NumTasks=1" ]
    [ "$(grep -oE ' NumTasks=[1-3] ' <<<"$others" | sort -u | wc -l)" = 2 ] # two configurations, not one twice
    output 2 | grep -q '^task ps 0'
    grep -q '^stopped: ' study.out
}

@test "the command line and SBATCH_* count like sbatch's own, over the script's lines" {
    script '#SBATCH --partition=main --time=7 --constraint=slow --ntasks=1'
    export SBATCH_TIMELIMIT=5 SBATCH_CONSTRAINT=fast SBATCH_MEM_PER_NODE=600M SBATCH_PARTITION=main
    study -n 2 -p short --nice=7 -c 1 --dt-ps=1 --dt-workers=1,2 train.sh
    unset "${!SBATCH_@}"
    finish
    each "$trials" 3 Partition=short TimeLimit=00:05:00 Features=fast MinMemoryNode=600M
    [ "$(grep -c . <<<"$others")" -ge 1 ]
    each "$others" "$(grep -c . <<<"$others")" Partition=short TimeLimit=00:05:00 Features=fast MinMemoryNode=600M
}

@test "arguments and the environment arrive as given" {
    script '#SBATCH -n 1 -t 5'
    export COLOUR='dark red' SHAPE=round
    study --dt-workers=1-3 --export=ALL,SHAPE=square train.sh --lr 0.1 'two  words' "it's" 'a"b$HOME' '' '*'
    finish
    each "$trials" 3
    output 3 >out
    grep -qF 'arg <two  words>' out
    grep -qF "arg <it's>" out
    grep -qF 'arg <a"b$HOME>' out
    grep -qxF 'arg <>' out
    grep -qF 'arg <*>' out
    grep -q '^environment dark red square' out

    # without ALL slurmd gets the user's login environment first, which takes seconds
    study --dt-workers=1 --export=SHAPE=flat train.sh
    finish
    output 1 | grep -q '^environment none flat'
    study --dt-workers=2 --export=NONE train.sh
    finish
    output 2 | grep -q '^environment none none'
}

@test "--chdir relative to the folder of the submission, records in that folder" {
    script '#SBATCH -n 1 -t 5'
    mkdir sub
    id=$(sbatch --parsable --dt-tune --dt-max-configs=2 --dt-workers=1-2 --chdir=sub "$PWD/train.sh")
    finish
    each "$trials" 2 WorkDir="$PWD/sub"
    output 2 | grep -qx "$PWD/sub"
    [ -f "sub/slurm-$id.out" ]
}

@test "GPUs go to the workers, in both layouts and however they are asked for" {
    script '#SBATCH --nodes=1 --ntasks=2 --gres=gpu:k80:2 --mem-per-cpu=200M -t 5'
    study --dt-ps=1 --dt-workers=2 train.sh
    finish
    each "$trials" 3
    grep -q ' NumTasks=1 .*TresPerNode=gres[:/]gpu:k80:2' <<<"$trials"
    each "$others" 1 NumTasks=2
    grep -qE ' TresPerTask=(cpu=1,)?gres[:/]gpu:k80[:=]1( |$)' <<<"$others"
    [[ $(grep ' HetJobId=' <<<"$trials") != *TresPer*gpu* ]]
    for n in 2 3; do
        output $n | grep -q '^task ps 0 none'
        [ "$(output $n | grep -c '^task worker . 0,1')" = 2 ]
    done

    script '#SBATCH --ntasks=2 --gpus=k80:1 --mem-per-gpu=400M --cpus-per-gpu=2 -t 5'
    study --dt-ps=0,1 --dt-workers=2 train.sh
    finish
    each "$trials" 3
    each "$others" 1 NumTasks=2 CPUs/Task=1
    grep -qE ' TresPerJob=gres[:/]gpu:k80[:=]1( |$)' <<<"$others"
    for n in 1 2 3; do
        [ "$(output $n | grep -c '^task worker . 0')" = 2 ]
        [ "$(output $n | grep -c '^task ps . [^n]')" = 0 ]
    done
}

@test "nodes, tasks of a node, exclusive nodes and overcommitted ones" {
    script '#SBATCH --nodes=2 --ntasks-per-node=2 --exclusive --mem=0 -t 5'
    study --dt-workers=3,6 train.sh
    finish
    each "$trials" 3 MinMemoryNode=0 OverSubscribe=NO
    [ "$(grep -oE ' NumNodes=[0-9]+' <<<"$trials" | xargs)" = "NumNodes=2 NumNodes=3 NumNodes=2" ]

    script '#SBATCH --nodes=2 --ntasks=12 --overcommit -t 5'
    study --dt-ps=0,1 --dt-workers=12 --dt-layout=packed train.sh
    finish
    each "$trials" 2 NumNodes=2
    [ "$(output 2 | grep -c '^task worker')" = 12 ]

    script '#SBATCH --nodelist=h[3-4] --ntasks=2 -t 5'
    study --dt-ps=0,1 --dt-workers=2,3 train.sh
    finish
    each "$trials" 3 'ReqNodeList=h[3-4]' 'NodeList=h[3-4]'
}

@test "best.sh as it stands, and dt-sbatch --dt-config, submit the same shape" {
    script '#SBATCH -n 3 -c 1 --mem-per-cpu=300M -t 5 --output=o-%x-%j'
    id=$(sbatch --parsable --dt-tune --dt-ps=1 --dt-workers=2,3 --dt-layout=het --dt-max-configs=3 train.sh 'one two')
    finish
    each "$trials" 3
    local best again job
    best=$(eval "sbatch --parsable $(sed -n 's/^submit it with: sbatch //p' "o-train.sh-$id")")
    again=$("$DT_BUILD/dt-sbatch" --parsable --dt-config="dt-tune-$id/best.json" train.sh 'one two')
    for job in $best $again; do
        wait_for 120 job_ended "$job"
        [ "$(job_state "$job")" = COMPLETED ]
        cat "o-train.sh-$job"
        grep -qF 'arg <one two>' "o-train.sh-$job"
        grep -q '^task ps 0' "o-train.sh-$job"
        grep -q '^task worker 1' "o-train.sh-$job"
    done
    shape() {
        scontrol -o show job "$1" | grep -oE ' (NumTasks|CPUs/Task|MinMemoryCPU|TimeLimit|NumNodes)=[^ ]+'
    }
    shape "$best"
    [ "$(shape "$best")" = "$(shape "$again")" ]
}

@test "a script from standard input and a wrapped command" {
    script '#SBATCH -n 1 -t 5'
    study --dt-workers=1-3 <train.sh
    finish
    each "$trials" 3
    output 2 | grep -q '^task worker 1'

    study --dt-workers=1-3 -n 1 --wrap='srun sh -c "echo \"task \$DT_ROLE \$DT_RANK\""'
    finish
    each "$trials" 3
    output 2 | grep -q '^task worker 1'

    run --separate-stderr bash -c 'cat train.sh | sbatch --dt-tune'
    [ "$status" -ne 0 ]
    [ -z "$output" ]
    [[ $stderr == *"dt-tune: "*"standard input"* ]]
}

@test "a trial whose servers were never started is no result" {
    cat >bare.sh <<'END'
#!/bin/bash
#SBATCH -n 2 -t 5 -o bare.out
PATH=/usr/bin:/bin
srun -n1 true
END
    id=$(sbatch --parsable --dt-tune --dt-ps=1 --dt-workers=1-2 --dt-layout=packed bare.sh)
    wait_for 120 job_ended "$id"
    cat bare.out
    [ "$(grep -c 'failed: roles not started' bare.out)" = 2 ]
    grep -q 'call dt-launch instead of srun' bare.out
    [ ! -e "dt-tune-$id/best.sh" ]
}

@test "sbatch takes every script that tests/data/expand expects" {
    local case name n=0 id
    for case in "$BATS_TEST_DIRNAME"/../data/expand/*.case; do
        grep -qx submits=no "$case" && continue
        name=${case%.case}.expected
        grep -q '^exit' "$name" && continue
        sed 's|@LAUNCH@|/bin/true|' "$name" >job.sh
        if ! id=$(sbatch --hold --parsable job.sh 2>err) || [ -s err ]; then
            echo "${name##*/}: $(cat err)"
            n=$((n + 1))
        fi
        scancel "$id"
    done
    [ $n = 0 ]
}
