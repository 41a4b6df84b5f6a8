#!/usr/bin/env bats
# What Slurm and people do to the jobs of a study: each fault has the outcome that dt-tune-admin(7) states.

bats_require_minimum_version 1.5.0
load common
load life

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 8 --cpus 4 --conf PreemptType=preempt/partition_prio --conf PreemptMode=REQUEUE \
        --conf SlurmctldParameters=preempt_send_user_signal --conf JobAcctGatherParams=OverMemoryKill --conf KillWait=30 \
        --conf "PartitionName=gentle Nodes=h[1-8] State=UP PriorityTier=1 GraceTime=300" \
        --conf "PartitionName=urgent Nodes=h[1-8] State=UP PriorityTier=10"
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    work=$(mktemp -d "$BATS_TEST_TMPDIR/faults.XXXXXX")
    cd "$work"
}

teardown() {
    # a test that failed half-way leaves some
    scancel -u "$(id -un)" 2>/dev/null || true
}

# urgent NODE: a job that takes the whole node from whatever runs there, for a moment.
urgent() {
    sbatch --parsable --partition=urgent --nodelist="$1" --exclusive --mem=10 --output=/dev/null --wrap "sleep 0.5"
}

# dead JOB: no process of it is left that could see what others are waiting for.
dead() {
    local all
    all=$(squeue -h -o %A) && ! grep -qx "$1" <<<"$all"
}

# twice CAUSE: the study has finished with all its trials, and trial 2 was run twice.
twice() {
    finished
    [ "$(ended 2 run)" = $'1\n2' ]
    [ "$(ended 2 cause | tail -1)" = ok ]
    grep -q "^ *2 run 1 ended ($1), no fault of the configuration: it is repeated" "$output"
}

@test "undisturbed: the sequence of trials that the others are compared with" {
    at_once plain_course
}

@test "trials: preempted, requeued, held, cancelled in one component, out of memory" {
    preempted() {
        start . "0.2 held" --exclusive
        soon 90 lines begun 2
        first=$(trial_job 2)
        urgent "$(node_of "$first")"
        soon 60 event ended 2
        soon 60 dead "$first"
        touch released
        twice preempted
    }
    requeued_trial() { # by hand; it would start behind the tuner's back, so Slurm is told beforehand to refuse
        start . "0.2 held"
        soon 90 lines begun 2
        run -1 scontrol requeue "$(trial_job 2)"
        [[ $output == *"disabled"* ]]
        touch released
        finished
        whole
    }
    one_component() {
        script 0.2 held
        sed -i 's/^held() {/touch past-$DT_TRIAL; &/' train.sh
        start . "" --dt-ps=1 --dt-layout=het
        soon 60 test -e past-2 # no step is under way that would fail of it
        scancel "$(trial_job 2)+1"
        soon 60 event ended 2
        [ "$(ended 2 cause)" = cancelled ]
        soon 60 dead "$(trial_job 2)" # its script too
        touch released
        finished
        [ "$(cut -d' ' -f1 over | tr '\n' ' ')" = "1 3 4 " ]
    }
    memory() {
        script 0.2
        sed -i '2a [ "$DT_TRIAL" != 2 ] || srun -n1 /usr/bin/python3 -c "import time; x = bytearray(200 << 20); time.sleep(30)" || exit' train.sh
        start . 0.2
        finished
        [ "$(ended 2 cause)" = "out of memory" ]
        grep -q '^ *2 .*failed: out of memory$' "$output"
        [ "$(ended 1 cause),$(ended 3 cause),$(ended 4 cause)" = ok,ok,ok ]
    }
    at_once preempted requeued_trial one_component memory
}

# obeys STATUS: makes a train.sh whose program exits with STATUS when it is told to end; in trial 2 it waits for that. It
# takes a while to end, as Slurm tells one process after the other, and this is not to be over before all are told.
obeys() {
    cat >train.sh <<END
#!/bin/bash
#SBATCH --ntasks=2 --mem-per-cpu=60M --job-name=t
srun bash -c '
trap "echo \$DT_TRIAL >>told; sleep 1; exit $1" TERM USR1
[ \$DT_TRIAL != 2 ] || echo \$WORLD_SIZE >up-\$DT_RANK
[ "\$DT_TRIAL\$DT_ROLE" != 2worker ] || until [ -e released ]; do sleep 0.05; done
[ \$DT_ROLE != ps ] || while :; do sleep 0.05; done'
END
}

# up: all tasks of trial 2 can be told.
up() {
    [ "$(cat up-* | wc -l)" = "$(cat up-0)" ]
}

# told STATUS OPTION...: with GraceTime Slurm tells the tasks, not their script, and takes what comes of it for an end of
# the job's own.
told() {
    obeys "$1"
    start . "" --partition=gentle --exclusive "${@:2}"
    soon 90 up
    urgent "$(node_of "$(trial_job 2)")"
    soon 60 test -e told
    soon 60 grep -q '"event":"ended","trial":2' "$dir/journal.jsonl"
    [ "$(ended 2 cause)" = preempted ]
    touch released
}

@test "a trial preempted in a partition with GraceTime, whose program takes that well or badly" {
    well() {
        told 0
        twice preempted
    }
    badly() {
        told 3
        twice preempted
    }
    roles() {
        told 0 --dt-ps=1 --dt-layout=het
        twice preempted
    }
    steps() { # newer versions of Slurm begin no steps then
        told 0 --dt-layout=steps
        cancelled
    }
    users_signal() {
        told 0 --signal=USR1@60
        twice preempted
    }
    at_once well badly users_signal
    at_once roles steps
}

# signalled STATUS CAUSE OPTION...: trial 2 gets a SIGTERM of somebody, and Slurm takes what comes of it for an end of its own.
signalled() {
    obeys "$1"
    start . "" "${@:3}"
    soon 90 up
    scancel --signal=TERM "$(trial_job 2)"
    soon 60 event ended 2
    touch released
    finished
    [ "$(ended 2 cause)" = "$2" ]
    [ "$(ended 1 cause),$(ended 3 cause),$(ended 4 cause)" = ok,ok,ok ]
}

@test "a trial whose tasks get SIGTERM, by hand or near its time limit, and whose program takes that well or badly" {
    well() { signalled 0 cancelled; }
    badly() { signalled 3 cancelled; }
    steps() { signalled 0 cancelled --dt-layout=steps; }
    warned() { signalled 0 "time limit" --signal=TERM@60; }
    at_once well badly steps warned
}

# idle OPTION...: trial 2 is suspended, and the tuning job with it where they are one.
idle() {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=2 --mem-per-cpu=60M --job-name=t
echo $PPID >wrapper-$DT_TRIAL
srun bash -c '[ $DT_TRIAL != 2 ] || until [ -e released ]; do [ -e begun ] || echo >begun; sleep 0.05; done'
END
    start . "" "$@"
    soon 90 test -e begun
    scontrol suspend "$(trial_job 2)"
    stopped() { grep -q '^State:.T' "/proc/$(cat wrapper-2)/status"; }
    soon 60 stopped
    sleep 4
    touch released
    scontrol resume "$(trial_job 2)"
    finished
    grep -q '^ *| suspended for [0-9]* s: its run time is without them' "$output"
    /usr/bin/python3 - "$dir/journal.jsonl" <<'END'
import json, sys
events = [e for e in map(json.loads, open(sys.argv[1])) if e.get("trial") == 2]
start, end = ([e for e in events if e["event"] == kind][-1] for kind in ("started", "ended"))
assert end["t"] - start["t"] - end["run_s"] > 2.5, events
assert end["run_s"] > 0, events
END
}

@test "a trial that is suspended: its time is without that" {
    by_itself() { idle; }
    with_the_tuner() { idle --dt-layout=steps; }
    at_once by_itself with_the_tuner
}

@test "a trial that is held by hand while it waits is waited for" {
    blocker=$(sbatch --parsable -n1 --mem=10 --licenses=dtlic:4 --output=/dev/null --wrap "sleep 600")
    soon 60 is_state "$blocker" RUNNING
    start . 0.2 --licenses=dtlic
    soon 60 event submitted
    scontrol hold "$(trial_job 1)"
    scancel "$blocker"
    held() { scontrol -o show job "$(trial_job 1)" | grep -q 'Reason=JobHeld'; }
    soon 60 held
    [ ! -e begun ]
    scontrol release "$(trial_job 1)"
    finished
    whole
}

# The pid of a node's slurmd.
slurmd_of() {
    awk -v n="slurmd-$1" '$1 == n { print $2 }' "$DT_CLUSTER_DIR/run/pids" | tail -1
}

@test "nodes: drained, their slurmd killed, down under the tuning job; the tuning job preempted" {
    drained() { # what runs there ends well, and the rest goes elsewhere
        start . "0.2 held"
        soon 90 lines begun 2
        node=$(node_of "$(trial_job 2)")
        scontrol update NodeName="$node" State=DRAIN Reason=test
        touch released
        finished
        scontrol update NodeName="$node" State=RESUME
        whole
    }
    tuner_preempted() {
        start . "0.2 held" --exclusive
        soon 90 lines begun 2
        node=$(node_of "$job")
        urgent "$node"
        soon 60 event stopping
        soon 60 event ended 2 # it was told to end, and must not find this first
        soon 60 no_trials
        touch released
        requeued "$node"
        finished
        whole
    }
    at_once drained
    at_once tuner_preempted # with whatever else is on its node
}

@test "nodes: the slurmd of a trial's node is killed" {
    start . "0.2 held" --exclusive
    soon 90 lines begun 2
    node=$(node_of "$(trial_job 2)")
    kill -KILL "$(slurmd_of "$node")"
    first=$(trial_job 2)
    scontrol update NodeName="$node" State=DOWN Reason=test # rather than after SlurmdTimeout
    soon 60 event ended 2
    daemon "slurmd-$node" slurmd -D -N "$node" -f "$SLURM_CONF" # which ends what is left there
    soon 60 dead "$first"
    touch released
    twice "node failure"
}

@test "nodes: the tuning job's node goes down" {
    start . "0.2 held" --exclusive
    soon 90 lines begun 2
    node=$(node_of "$job")
    scontrol update NodeName="$node" State=DOWN Reason=test
    scontrol update NodeName="$node" State=DRAIN Reason=test # or it would be back at once
    soon 60 event finished # it was told to end
    soon 60 no_trials
    touch released
    requeued "$node"
    [ "$(node_of "$job")" != "$node" ]
    scontrol update NodeName="$node" State=RESUME
    finished
    whole
}

# For longer than a refused submission waits, and than libslurm waits for an answer. DT_DOWN: seconds.
@test "slurmctld is down: a trial ends meanwhile, the next ones begin when it is back" {
    start . held
    soon 90 lines begun 1
    state_saved
    (sleep 1 && touch released) 3>&- &
    restart_slurmctld "${DT_DOWN-20}"
    lines over 1
    soon 60 event finished
    finished
    whole
    [ "$(wc -l <begun)" = 4 ]
}
