#!/usr/bin/env bats
# The private Slurm that the other files test on.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --gpus 2
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    cluster=$BATS_TEST_DIRNAME/dt-cluster
    other=
    # Readable by the ordinary user some tests act as.
    work=$(mktemp -d /tmp/dt-cluster-test.XXXXXX)
    chmod 777 "$work"
    cd "$work"
}

teardown() {
    [ -n "${work-}" ] || return 0
    for one in $other "$work"/c?; do
        [ ! -e "$one" ] || "$cluster" down "$one"
    done
    cd /
    rm -rf "$work"
}

ordinary=games # Slurm 26.05 takes nobody for no user at all

# Runs a command as an ordinary user.
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=$ordinary --regid="$(id -g $ordinary)" --clear-groups "$@"
    else
        "$@"
    fi
}

# Prints the processes that belong to the cluster in folder $1, by what they hold open, and by name.
processes_of() {
    find /proc/[0-9]*/fd -maxdepth 1 -lname "$1/*" -printf '%h\n' 2>/dev/null | sort -u
    pgrep -af -- "$1/" | grep -v pgrep || true
}

het_script() {
    cat >"$work/het.sh" <<'END'
#!/bin/bash
#SBATCH --ntasks=1 --output=het.out
#SBATCH hetjob
#SBATCH --ntasks=2
srun --het-group=0,1 bash -c 'echo rank $SLURM_PROCID on $SLURMD_NODENAME'
END
}

check_down() {
    [ ! -e "$1" ]
    run processes_of "$1"
    [ "$output" = "" ]
}

@test "up takes seconds (here it says how many) and gives N idle nodes" {
    before=$(date +%s%N)
    other=$("$cluster" up --nodes 5)
    took=$((($(date +%s%N) - before) / 1000000))
    echo "# up took $took ms" >&3
    [ $took -lt 60000 ]
    run env SLURM_CONF="$other/etc/slurm.conf" sinfo -h -N -p main -t idle -o %N
    [ "$output" = $'h1\nh2\nh3\nh4\nh5' ]
}

@test "partitions, features, licences and memory are as promised" {
    run sinfo -h -o '%P %l'
    [[ $output == *'main* infinite'* ]]
    [[ $output == *'short 10:00'* ]]
    run sinfo -h -p main -o '%N %f %c %m'
    [[ $output == *'h[1-2] fast 4 4096'* ]]
    [[ $output == *'h[3-4] slow 4 4096'* ]]
    scontrol show licenses | grep -q 'LicenseName=dtlic'
}

@test "a plain job runs to its end" {
    sbatch --wait --output=plain.out --wrap 'echo hello from $SLURMD_NODENAME'
    [[ $(cat plain.out) == 'hello from h'[1-4] ]]
}

@test "a het job of two components does not wait for Slurm's usual 30 s and runs to its end" {
    het_script
    job=$(sbatch --parsable het.sh)
    wait_for 60 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ]
    [ "$(cut -d' ' -f1-3 het.out | sort)" = $'rank 0 on\nrank 1 on\nrank 2 on' ]
    times=$(scontrol -o show job "$job" | head -n 1)
    submitted=$(date -d "$(sed -E 's/.* SubmitTime=(\S+).*/\1/' <<<"$times")" +%s)
    started=$(date -d "$(sed -E 's/.* StartTime=(\S+).*/\1/' <<<"$times")" +%s)
    echo "# het job waited $((started - submitted)) s" >&3
    [ $((started - submitted)) -lt 15 ]
}

@test "a job gets its GPUs" {
    sbatch --wait --output=gpu.out --gpus-per-node=2 --wrap 'echo $SLURM_GPUS_ON_NODE:$CUDA_VISIBLE_DEVICES'
    if mknod "$work/null" c 1 3 2>/dev/null; then
        [ "$(cat gpu.out)" = 2:0,1 ]
    else
        [ "$(cat gpu.out)" = 2: ]
    fi
    run sbatch --gpus-per-node=3 --wrap true
    [ "$status" -ne 0 ]
}

@test "an ordinary user can submit to a cluster of root" {
    [ "$(id -u)" = 0 ] || skip "not root"
    as_user sbatch --wait --output="$work/user.out" --wrap 'id -un'
    [ "$(cat user.out)" = $ordinary ]
}

@test "two clusters side by side" {
    other=$("$cluster" up --nodes 2 --gpus k80:1 --conf KillWait=7 --conf 'PartitionName=tiny Nodes=h1 MaxTime=1')
    sbatch --wait --output=one.out --wrap 'scontrol show node h1 | grep -o Gres=.*'
    (
        eval "$("$cluster" env "$other")"
        sbatch --wait --output=two.out --wrap 'scontrol show node h1 | grep -o Gres=.*'
        scontrol show config | grep -Eq 'KillWait += 7 '
        [ "$(grep -c ^KillWait= "$SLURM_CONF")" = 1 ]
        sinfo -h -o %P | grep -qx tiny
    )
    [ "$(cat one.out)" = Gres=gpu:2 ]
    [ "$(cat two.out)" = Gres=gpu:k80:1 ]
    "$cluster" down "$other"
    check_down "$other"
    [ "$(sinfo -h -N -p main | wc -l)" = 4 ]
}

@test "six clusters started at once do not take each other's ports" {
    echo RANDOM=1 >seed # all of them would like to have the same ones
    for i in 1 2 3 4 5 6; do
        BASH_ENV=$work/seed "$cluster" up --nodes 1 --dir "$work/c$i" >"$work/out$i" 2>&1 3>&- &
    done
    wait
    for i in 1 2 3 4 5 6; do
        diff - "$work/out$i" <<<"$work/c$i"
        SLURM_CONF=$work/c$i/etc/slurm.conf srun true
        "$cluster" down "$work/c$i"
    done
    [ "$(ls -d "$work"/c? 2>/dev/null)" = "" ]
}

@test "down ends running jobs, also what left its session" {
    other=$("$cluster" up --nodes 1)
    (
        eval "$("$cluster" env "$other")"
        job=$(sbatch --parsable --output="$work/pids" --wrap \
            'sleep 3000 & echo $!; setsid sleep 3001 & echo $!; (trap "" TERM; sleep 3002 & echo $!); wait')
        running() { [ "$(wc -l 2>/dev/null <"$work/pids")" = 3 ]; }
        wait_for 60 running
    )
    for pid in $(cat pids); do
        kill -0 "$pid"
    done
    "$cluster" down "$other"
    check_down "$other"
    for pid in $(cat pids); do
        run grep -q sleep "/proc/$pid/cmdline"
        [ "$status" -ne 0 ]
    done
}

@test "down cleans up after daemons were killed" {
    other=$("$cluster" up --nodes 2)
    for name in slurmctld slurmd-h1; do
        kill -KILL "$(awk -v n=$name '$1 == n { print $2 }' "$other/run/pids")"
    done
    "$cluster" down "$other"
    check_down "$other"
}

@test "down spares a process that took over a recorded pid" {
    other=$("$cluster" up --nodes 1)
    sleep 300 3>&- &
    stranger=$!
    echo "slurmd-h9 $stranger 1" >>"$other/run/pids"
    "$cluster" down "$other"
    check_down "$other"
    kill -0 $stranger
    kill $stranger
}

# Succeeds if `up` has recorded $1 daemons at least.
recorded() {
    [ "$(wc -l 2>/dev/null <"$other/run/pids")" -ge "$1" ] 2>/dev/null
}

@test "down cleans up after up was killed half-way, whatever it had recorded" {
    for daemons in 1 2 3 4; do
        other=$work/half$daemons
        "$cluster" up --dir "$other" --nodes 3 >/dev/null 3>&- &
        starter=$!
        until recorded $daemons; do
            kill -0 $starter || recorded $daemons # it may have come to its end meanwhile
        done
        kill -KILL $starter || true
        wait $starter || true
        sed -i '$d' "$other/run/pids"
        "$cluster" down "$other"
        check_down "$other"
    done
}

@test "down --keep leaves the logs, and a second down removes them" {
    other=$("$cluster" up --nodes 1)
    "$cluster" down --keep "$other"
    grep -q slurmctld "$other/log/slurmctld.log"
    run processes_of "$other"
    [ "$output" = "" ]
    "$cluster" logs "$other" | grep -q '==> .*slurmctld.log'
    "$cluster" down "$other"
    check_down "$other"
}

@test "run gives the command's output and status and leaves nothing" {
    run --separate-stderr "$cluster" run --dir "$work/c" --nodes 2 -- bash -c 'srun -N2 echo ran; echo "$DT_CLUSTER_DIR"; exit 7'
    [ "$status" -eq 7 ]
    [ "$output" = $'ran\nran\n'"$work/c" ]
    check_down "$work/c"
    run "$cluster" run --keep --dir "$work/c" --nodes 1 -- true
    [ "$status" -eq 0 ]
    [ -e "$work/c/log/slurmctld.log" ]
    "$cluster" down "$work/c"
}

@test "run takes the cluster down on a signal, and its command hears it" {
    "$cluster" run --dir "$work/c" --nodes 1 -- bash -c 'trap "echo heard >heard; exit" TERM; echo >ready; while :; do sleep 0.1; done' 3>&- &
    pid=$!
    wait_for 60 test -e ready
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ "$status" -eq 143 ]
    [ "$(cat heard)" = heard ]
    check_down "$work/c"
}

@test "an ordinary user's own cluster runs a het job" {
    het_script
    if [ "$(id -u)" = 0 ]; then
        set -- --user $ordinary
    fi
    "$cluster" run "$@" --dir "$work/c" --gpus 1 -- bash -c '
        id -u
        sbatch --wait het.sh
        srun --gpus=1 bash -c "scontrol show job \$SLURM_JOB_ID"' >out
    [ "$(head -n 1 out)" != 0 ]
    grep -q 'TresPerJob=gres.*gpu:1' out
    [ "$(cut -d' ' -f1-2 het.out | sort)" = $'rank 0\nrank 1\nrank 2' ]
    check_down "$work/c"
}

@test "accounting: sacct knows an ended job" {
    PATH=$PATH:/usr/sbin
    for tool in slurmdbd mariadbd mariadb-install-db sacct; do
        command -v $tool >/dev/null || skip "$tool is not installed"
    done
    before=$(date +%s%N)
    other=$("$cluster" up --dbd --nodes 2 --gpus 1 2>errors) || {
        cat errors
        # Slurm 24.11 with the client library of MariaDB 11.8.9, for one.
        grep -q 'fatal: _check_mysql_concat_is_sane' errors && skip "this slurmdbd cannot use this MariaDB"
        return 1
    }
    took=$((($(date +%s%N) - before) / 1000000))
    echo "# up --dbd took $took ms" >&3
    [ $took -lt 120000 ]
    eval "$("$cluster" env "$other")"
    job=$(sbatch --parsable --output=/dev/null --gpus=1 --wrap 'exit 3')
    known() { sacct -n -X -P -j "$job" -o state,exitcode,alloctres | grep -q '^FAILED|3:0|.*gres/gpu=1'; }
    wait_for 60 known
    sacctmgr -nP show account dt format=account | grep -qx dt
    "$cluster" down "$other"
    check_down "$other"
}

@test "the build tree's plugins are configured where built, job_submit on request not" {
    mkdir -p "$work/build/plugin/.libs" "$work/build/tools"
    run "$cluster" up --build "$work/build" --dir "$work/c" --nodes 1
    [ "$status" -eq 0 ]
    [[ $output == *'cluster without plugins'* ]]
    run grep -E '^(PluginDir|PlugStackConfig|JobSubmitPlugins)=' "$work/c/etc/slurm.conf"
    [ "$output" = "" ]
    "$cluster" down "$work/c"
    # Optional, so a SPANK plugin that does not load is no error.
    : >"$work/build/plugin/.libs/spank_dt_tune.so"
    : >"$work/build/plugin/.libs/job_submit_dt_tune.so"
    : >"$work/build/tools/dt-tune"
    "$cluster" up --build "$work/build" --dir "$work/c" --nodes 1 --no-job-submit
    [ "$(cat "$work/c/etc/plugstack.conf")" = \
        "optional $work/build/plugin/.libs/spank_dt_tune.so dt_tune=$work/build/tools/dt-tune" ]
    grep -q "^PluginDir=/.*:$work/build/plugin/.libs$" "$work/c/etc/slurm.conf"
    run grep JobSubmitPlugins "$work/c/etc/slurm.conf"
    [ "$status" -ne 0 ]
    run bash -c "eval \"\$('$cluster' env '$work/c')\"; echo \$PATH"
    [[ $output == "$work/build:$work/build/tools:"* ]]
    "$cluster" down "$work/c"
}

@test "wrong use: status 2, one line, nothing started" {
    for bad in '' 'fly' 'up --nodes' 'up --nodes 0' 'up --cpus x' 'up --gpus k80' 'up --nope' 'run true' 'up -- true' 'env' 'down'; do
        # shellcheck disable=SC2086
        run "$cluster" $bad
        [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    run "$cluster" down "$work"
    [ "$status" -eq 1 ]
    [ -d "$work" ]
    echo precious >"$work/file"
    run "$cluster" up --dir "$work"
    [ "$status" -eq 1 ]
    [ "$(cat "$work/file")" = precious ]
    run "$cluster" --help
    [ "$status" -eq 0 ]
    [[ $output == Usage:* ]]
}

@test "a start that fails says why and leaves nothing" {
    run "$cluster" up --dir "$work/c" --conf 'SelectType=select/nonsense'
    [ "$status" -eq 1 ]
    [[ $output == *nonsense* ]]
    check_down "$work/c"
}
