#!/usr/bin/env bats
# What an administrator says in dt-tune.conf, in a real slurmctld that is reconfigured.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --conf "PartitionName=tuners Nodes=ALL MaxTime=2:00:00"
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    conf=$DT_CLUSTER_DIR/etc/dt-tune.conf
    cd "$BATS_TEST_TMPDIR"
    # A trial would wait here; no test lets one start.
    printf '#!/bin/bash\n#SBATCH -n2 --time=5\nsrun sleep 300\n' >train.sh
}

teardown() {
    [ -n "${conf-}" ] || return 0
    rm -f "$conf"
    scancel --me
    scontrol reconfigure
}

# write LINE...: the file now says these lines, and slurmctld is told.
write() {
    printf '%s\n' "$@" >"$conf"
    scontrol reconfigure
}

field() {
    scontrol -o show job "$1" | sed -nE "s,.* $2=([^ ]*).*,\1,p"
}

# refused WORDS COMMAND...: it fails with a line that has the words in it.
refused() {
    local words=$1
    shift
    run --separate-stderr "$@"
    echo "status $status, output: $output, stderr: $stderr"
    [ "$status" -ne 0 ]
    [[ $stderr == *"$words"* ]]
    [ "$(squeue -h | wc -l)" = 0 ]
}

# As from a host that has no dt-tune.conf: what slurmctld itself enforces.
elsewhere() {
    mkdir -p elsewhere
    cp "$SLURM_CONF" elsewhere/slurm.conf
    SLURM_CONF=$PWD/elsewhere/slurm.conf "$@"
}

log_lines() {
    grep -c "dt-tune: .*dt-tune.conf" "$DT_CLUSTER_DIR/log/slurmctld.log" || true
}

@test "the tuning job gets its partition and size, the trials do not" {
    write TunerPartition=tuners TunerMemory=100M TunerTime=60
    job=$(sbatch -H --parsable --dt-tune --dt-workers=1-2 train.sh)
    [ "$(field "$job" Partition)" = tuners ]
    [ "$(field "$job" MinMemoryNode)" = 100M ]
    [ "$(field "$job" TimeLimit)" = 01:00:00 ]
    scancel "$job"
    job=$(elsewhere sbatch -H --parsable --dt-tune --dt-workers=1-2 train.sh)
    [ "$(field "$job" Partition)" = tuners ]
    [ "$(field "$job" MinMemoryNode)" = 100M ]
    [ "$(field "$job" TimeLimit)" = 01:00:00 ]
    scancel "$job"
    job=$(dt-sbatch -H --parsable -p main --dt-tune --dt-workers=1-2 train.sh)
    [ "$(field "$job" Partition)" = tuners ]
    [ "$(field "$job" MinMemoryNode)" = 100M ]
    [ "$(field "$job" TimeLimit)" = 01:00:00 ]
    scancel "$job"
    job=$(sbatch -H --parsable train.sh)
    [ "$(field "$job" Partition)" = main ]
    [ "$(field "$job" TimeLimit)" = 00:05:00 ]
}

@test "who may not tune is told by the tools, and by slurmctld where those are not asked" {
    write AllowUsers=no-such-user
    for from in '' elsewhere; do
        # shellcheck disable=SC2086
        refused "$conf: AllowUsers=no-such-user" $from sbatch --dt-tune --dt-workers=1-2 train.sh
    done
    refused "$conf: AllowUsers=no-such-user" dt-sbatch --dt-tune --dt-workers=1-2 train.sh
    job=$(sbatch -H --parsable train.sh)
    scancel "$job"
    write AllowUsers="no-such-user,$(id -un)" AllowAccounts=phys
    for from in '' elsewhere; do
        # shellcheck disable=SC2086
        refused "$conf: AllowAccounts=phys" $from sbatch --dt-tune --dt-workers=1-2 train.sh
        # shellcheck disable=SC2086
        refused "$conf: AllowAccounts=phys" $from sbatch --account=chem --dt-tune --dt-workers=1-2 train.sh
        # shellcheck disable=SC2086
        job=$($from sbatch -H --parsable --account=phys --dt-tune --dt-workers=1-2 train.sh)
        scancel "$job"
    done
    write 'Refuse="back at noon"'
    refused "$conf: Refuse=back at noon" sbatch --dt-tune --dt-workers=1-2 train.sh
    refused "$conf: Refuse=back at noon" elsewhere sbatch --dt-tune --dt-workers=1-2 train.sh
}

@test "a study that asks for too much is refused, one that does not say is limited" {
    write MaxParallel=2 MaxConfigs=7 MaxNodeHours=0.5
    refused "$conf: MaxParallel=2" sbatch --dt-tune --dt-workers=1-2 --dt-parallel=3 train.sh
    refused "$conf: MaxConfigs=7" dt-sbatch --dt-tune --dt-workers=1-2 --dt-max-configs=8 train.sh
    refused "$conf: MaxNodeHours=0.5" sbatch --dt-tune --dt-workers=1-2 --dt-max-node-hours=1 train.sh
    job=$(sbatch -H --parsable --dt-tune --dt-workers=1-2 --dt-parallel=2 train.sh)
    scontrol write batch_script "$job" - | grep -E '"max_configs":7,' | grep '"max_node_hours":0.5'
}

@test "a file that cannot be used: one line, and what was there before stays" {
    write 'Refuse="back at noon"'
    refused "$conf: Refuse=back at noon" elsewhere sbatch --dt-tune --dt-workers=1-2 train.sh
    before=$(log_lines)
    write MaxParalel=2
    refused "$conf: line 1: there is no key \"MaxParalel\"" sbatch --dt-tune --dt-workers=1-2 train.sh
    refused "$conf: " elsewhere sbatch --dt-tune --dt-workers=1-2 train.sh
    scontrol ping | grep -q UP
    job=$(sbatch -H --parsable train.sh)
    scancel "$job"
    [ "$(log_lines)" -gt "$before" ]
    grep -E "dt-tune: $conf: line 1: .*MaxParalel" "$DT_CLUSTER_DIR/log/slurmctld.log"
    run dt-tune doctor
    [[ $output == *"BAD"*"MaxParalel"* ]]
    rm "$conf"
    scontrol reconfigure
    job=$(elsewhere sbatch -H --parsable --dt-tune --dt-workers=1-2 train.sh)
    run dt-tune doctor
    [[ $output == *"there is no $conf: nothing is limited"* ]]
}

@test "the history is where the administrator says" {
    write "History=$PWD/all/%u"
    unset DT_TUNE_HISTORY
    run dt-tune doctor
    [[ $output == *"the history, $PWD/all/$(id -un),"* ]]
}

@test "the example is one, with every line switched on" {
    sed -E 's/^#([A-Za-z]+=)/\1/' "$BATS_TEST_DIRNAME/../../etc/dt-tune.conf.example" >"$conf"
    [ "$(grep -c '^[A-Za-z]*=' "$conf")" -ge 11 ]
    run dt-tune doctor
    [[ $output == *"note  $conf: Refuse=dt-tune is being upgraded, back at noon"* ]]
}

# post SCRIPT: submits it through slurmrestd, which reads a request from its standard input where it is given no port; and
# prints the job's id.
post() {
    local body
    body=$("${PYTHON:-/usr/bin/python3}" -c '
import json, os, sys
keep = ("PATH", "SLURM_CONF", "DT_TUNE_HISTORY")
print(json.dumps({"script": sys.argv[1], "job": {"name": "rest", "ntasks": 1, "current_working_directory": os.getcwd(),
                                                 "environment": {name: os.environ[name] for name in keep}}}))' "$1")
    # It takes the owner of a pipe for the user, and does not like to be root's.
    printf '%s\r\n' 'POST /slurm/v0.0.38/job/submit HTTP/1.1' 'Host: here' 'Content-Type: application/json' \
        "Content-Length: ${#body}" 'Connection: close' '' "$body" |
        SLURMRESTD_SECURITY=disable_user_check,disable_unshare_files,disable_unshare_sysv PATH=$PATH:/usr/sbin \
            timeout 60 slurmrestd -s openapi/v0.0.38 -a rest_auth/local -f "$SLURM_CONF" >answer 2>err || true
    sed -nE 's/^ *"job_id": ([1-9][0-9]*).*/\1/p' answer
}

@test "slurmrestd: a job whose script is dt-sbatch starts a study, without any plugin's option" {
    PATH=$PATH:/usr/sbin command -v slurmrestd >/dev/null || skip "slurmrestd is not installed"
    dirs=$(scontrol show config | sed -n 's/^PluginDir *= //p')
    [ -n "$(find ${dirs//:/ } -name openapi_v0_0_38.so)" ] || skip "slurmrestd speaks another version than v0.0.38"
    printf '#!/bin/bash\n#SBATCH -n1 --time=5\nsrun true\n' >train.sh
    job=$(post $'#!/bin/bash\nexec dt-sbatch --dt-tune --dt-workers=1,2 --dt-max-configs=2 --output=study.out train.sh')
    [ -n "$job" ] || { cat err answer && false; }
    wait_for 60 job_ended "$job"
    wait_for 60 grep -qs 'best configuration: ' study.out || { tail -n +1 ./*.out && false; }
}
