#!/usr/bin/env bats
# Limits of accounts, users and QOSs: what they forbid for ever is not tried, for the rest trials wait.

load common

setup_file() {
    cluster_up --nodes 4 --cpus 4 --dbd --conf AccountingStorageEnforce=limits,qos \
        --conf "PartitionName=closed Nodes=h1 AllowGroups=daemon" --conf "PartitionName=rooms Nodes=h1 RootOnly=YES" \
        --conf "PartitionName=open Nodes=h1 AllowGroups=daemon,$(ordinary id -gn)"
    [ -n "${DT_CLUSTER_MISSING-}" ] || add_accounts
}

teardown_file() {
    cluster_down
}

# Runs a command as a user whom Slurm does not let everywhere.
ordinary() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
    else
        "$@"
    fi
}

# An account a test, so that none meets another's limits.
add_accounts() {
    local me account
    me=$(id -un)
    {
        for account in job submit running group none denied; do
            sacctmgr -iQ add account "$account" Cluster=dtcluster
            sacctmgr -iQ add user "$me" Account="$account" Cluster=dtcluster
        done
        sacctmgr -iQ add qos strict MaxTRESPerJob=cpu=2 Flags=DenyOnLimit
        sacctmgr -iQ modify user "$me" where Account=denied set QOS+=strict DefaultQOS=strict
        sacctmgr -iQ modify user "$me" where Account=job set MaxTRESPerJob=cpu=3
        sacctmgr -iQ modify user "$me" where Account=submit set MaxSubmitJobs=2
        sacctmgr -iQ modify user "$me" where Account=running set MaxJobs=2
        sacctmgr -iQ modify account group set GrpTRES=cpu=3
        sacctmgr -iQ add account stranger Cluster=dtcluster GrpTRES=cpu=1
        sacctmgr -iQ modify user "$me" where Account=none set MaxJobs=1
    } >&2
    wait_for 60 sees_limits
}

# slurmctld hears of changes from slurmdbd by itself.
sees_limits() {
    dt-tune topo | grep -q 'in account none: at most 1 jobs of a user at a time'
}

# script [COMMAND]
script() {
    printf '#!/bin/bash\n#SBATCH --mem-per-cpu=10M\n%s\n' "${1-:}" >train.sh
}

# study ACCOUNT OPTION...: runs a study of train.sh, or of a script that does nothing, to its end; its output is in the file
# out.
study() {
    local job account=$1
    shift
    [ -e train.sh ] || script
    job=$(sbatch --parsable --account="$account" --output=out --dt-tune --dt-param=lr={1,2} "$@" train.sh)
    wait_for 120 job_ended "$job"
    cat out
    [ "$(job_state "$job")" = COMPLETED ]
}

more_than_a_job_may_have() {
    study job --dt-workers=1-6 --dt-max-configs=4
    grep -q '6 excluded: limits: more CPUs than a job of yours may have' out
    squeue -h -o %r | awk '/MaxCpuPerJob/ { n++ } END { exit n > 0 }'
}

more_than_may_be_submitted() {
    script 'until grep -q "waits: " out; do sleep 0.1; done' # none is over before the next is refused
    study submit --dt-workers=1-2 --dt-parallel=2 --dt-max-configs=2
    grep -q 'waits: .*AssocMaxSubmitJobLimit' out
    grep -q '2 trials' out
}

more_than_may_run() {
    study running --dt-workers=1-2 --dt-parallel=3 --dt-max-configs=4 --dt-layout=packed
    grep -q '4 trials' out
}

more_than_all_may_have() {
    study group --dt-workers=1-4 --dt-max-configs=4
    grep -q '4 excluded: limits: more CPUs than your jobs may have at a time' out
}

what_a_qos_refuses() {
    study denied --dt-workers=1-4 --dt-max-configs=3
    grep -q '4 excluded: limits: more CPUs than a job of yours may have' out
}

@test "what limits forbid is not tried, and where they only slow down trials wait" {
    cd "$BATS_TEST_TMPDIR"
    at_once more_than_a_job_may_have more_than_may_be_submitted more_than_may_run more_than_all_may_have \
        what_a_qos_refuses
}

@test "a study that limits leave no room for is refused at once" {
    cd "$BATS_TEST_TMPDIR"
    script
    run sbatch --account=none --dt-tune --dt-workers=1-2 train.sh
    echo "$output"
    [ "$status" -ne 0 ]
    [[ $output == *"limits: more jobs at a time than you may run, the tuning job among them"* ]]
}

@test "topo shows the limits, and a file of it has them" {
    cd "$BATS_TEST_TMPDIR"
    idle() { [ "$(sinfo -h -N -p main -t idle -o %N | wc -l)" = 4 ]; }
    wait_for 60 idle # and so its nodes stay
    dt-tune topo >out
    cat out
    grep -q 'user .* in account job: at most 3 cpu a job' out
    grep -q 'account group: at most 3 cpu in all' out
    grep -q 'QOS strict: at most 2 cpu a job' out
    awk '/stranger/ { n++ } END { exit n > 0 }' out
    dt-tune topo --save=c.json
    dt-tune topo --cluster=c.json | diff out -
}

@test "partitions for other groups, or for root, are told and not tried" {
    cd "$BATS_TEST_TMPDIR"
    [ "$(id -u)" = 0 ] || skip "the cluster's own user may go everywhere"
    ordinary dt-tune --version || skip "the tools are where only root may go"
    ordinary dt-tune topo --format=json >c.json
    dt-tune topo --cluster=c.json | tr -s ' \n' ' ' >out
    cat out
    grep -q 'groups that you are not in daemon' out
    grep -q 'groups daemon,nogroup' out
    echo '{"dt": {"workers": [1, 2], "partition": {"choices": ["main", "closed", "open", "rooms"]}}}' >spec.json
    dt-tune check --cluster=c.json spec.json >out
    cat out
    grep -q '2 excluded: partition: you are in none of its groups' out
    grep -q '2 excluded: partition: it is open to root only' out
    dt-tune topo --save=c.json
    dt-tune check --cluster=c.json spec.json | grep -q '^.*8 configurations'
}

@test "a database that is down keeps nobody waiting" {
    cd "$BATS_TEST_TMPDIR"
    kill "$(awk '$1 == "slurmdbd" { print $2 }' "$DT_CLUSTER_DIR/run/pids")"
    timeout 20 dt-tune topo >out
    grep -q 'user .* in account job: at most 3 cpu a job' out
    study job --dt-workers=1-3 --dt-max-configs=2
}
