#!/usr/bin/env bats
# The life of a study on a real Slurm: however its tuner ends, no trial is left behind, none is lost and none is
# repeated; trials that fail, whatever of; and what is measured is what happened.

bats_require_minimum_version 1.5.0
load common
load life

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    # a tuner that is told to end has time for it, however busy the machine is
    cluster_up --nodes 8 --cpus 8 --conf "PartitionName=other Nodes=h[1-8] State=UP" --conf KillWait=10
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    work=$(mktemp -d "$BATS_TEST_TMPDIR/life.XXXXXX")
    cd "$work"
}

teardown() {
    # a test that failed half-way leaves some
    scancel -u "$(id -un)" 2>/dev/null || true
}

# block, unblock: all licences are taken, so that trials with --licenses=dtlic pend.
block() {
    blocker=$(sbatch --parsable -n1 --mem=10 --licenses=dtlic:4 --output=/dev/null --wrap "sleep 600")
    soon 60 is_state "$blocker" RUNNING
}

unblock() {
    scancel "$blocker"
}

@test "uninterrupted: the sequence of trials that the others are compared with" {
    at_once plain_course het_course
}

@test "scancel of the tuning job: before and while it starts, during the first submission" {
    before() {
        start . 0.3 --hold
        is_state "$job" PENDING
        cancelled
        [ ! -e "$dir" ]
        run -1 sbatch --dt-tune --dt-resume="$job" train.sh
        [[ $output == *"dt-tune-$job"*": No such file or directory; give the study's folder or its job id"* ]]
        [ ! -e begun ]
    }
    starting() {
        start . held
        soon 60 is_state "$job" RUNNING
        cancelled
        touch released
        if [ -e "$dir/journal.jsonl" ]; then
            resume
            whole
        else
            [ ! -e begun ]
        fi
    }
    no_trial_yet() { # told to end between the record of the study and that of its first trial
        start . held
        soon 60 event submitted
        cancelled
        touch released
        local t='{"t":1795979370.6,"event":'
        printf '%s\n' "$(head -1 "$dir/journal.jsonl")" "$t"'"stopping","text":"interrupted","interrupted":true}' \
            "$t"'"finished"}' >journal
        cp journal "$dir/journal.jsonl"
        rm -rf "$dir/trials" begun over
        resume
        whole
    }
    # an sbatch that is slow before, and one that is slow to answer
    real=$(command -v sbatch)
    slow() {
        mkdir bin
        printf '#!/bin/sh\n%s\n' "$1" >bin/sbatch
        chmod +x bin/sbatch
        here=$PWD
        PATH=$PWD/bin:$PATH SUBMIT=dt-sbatch start study held
        soon 60 test -e "$here/mark"
        cancelled
        touch released
    }
    slow_before() {
        slow 'case "$*" in *trials*) touch '"$PWD"'/mark; sleep 30 ;; esac; exec '"$real"' "$@"'
        [ ! -e begun ]
        resume "$job"
        whole
    }
    slow_after() {
        slow "$real"' "$@"; rc=$?; case "$*" in *trials*) touch '"$PWD"'/mark; sleep 30 ;; esac; exit $rc'
        resume
        whole
    }
    at_once before starting no_trial_yet slow_before slow_after
}

@test "scancel of the tuning job while a trial is pending" {
    block
    pending() {
        start . 0.3 --licenses=dtlic
        soon 60 event submitted
        [ "$(trials_queued | wc -l)" = 1 ]
        cancelled
        [ ! -e begun ]
        touch ready
        soon 300 test -e ../go
        resume
        whole
    }
    het_pending() {
        start . 0.3 --licenses=dtlic --dt-ps=1 --dt-layout=het
        soon 60 event submitted
        [ -n "$(trials_queued)" ]
        cancelled
        touch ready
        soon 300 test -e ../go
        resume "$job"
        sequence=het whole
    }
    release() {
        soon 300 test -e ../pending/ready -a -e ../het_pending/ready
        unblock
        touch ../go
    }
    at_once pending het_pending release
}

@test "scancel of the tuning job while trials run" {
    just_started() {
        start . held
        soon 60 event started
        cancelled
        touch released
        resume
        whole
    }
    running() {
        start . held
        soon 60 test -e begun
        sleep 0.3
        cancelled
        [ ! -e over ]
        touch released
        run -0 dt-sbatch --dt-tune --dt-resume="$dir" --here train.sh
        whole
    }
    het_running() {
        start . held --dt-ps=1 --dt-layout=het
        soon 60 test -e begun
        cancelled
        [ ! -e over ]
        touch released
        resume
        sequence=het whole
    }
    parallel() {
        start . "held held" --dt-parallel=3
        soon 90 lines begun 3
        cancelled
        [ ! -e over ]
        touch released
        resume
        whole
    }
    at_once just_started running het_running parallel
}

@test "scancel of the tuning job as a trial ends, between trials, during the report" {
    ending() {
        start . 0.3
        soon 60 test -e over
        cancelled
        resume
        # a script that had noted its end may have been killed before it could exit
        [ "$(sort -n over | cut -d' ' -f1 | uniq | tr '\n' ' ')" = "1 2 3 4 " ]
        [ "$(wc -l <over)" -le 5 ]
    }
    between() {
        start . "0.3 held"
        soon 60 event ended
        cancelled
        touch released
        resume
        whole
    }
    reporting() {
        start . 0.3
        soon 120 event stopping
        cancelled
        resume
        grep -q "^submit it with: sbatch $dir/best.sh" "$output"
        whole
    }
    at_once ending between reporting
}

# Ends the tuner's own process (the tuning job's script has become it) as a crash would.
kill_tuner() {
    local pid
    pid=$(pgrep -o -f "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")
    kill -KILL "$pid"
    soon 60 job_ended "$job"
}

@test "kill -9 of the tuner: an orphaned trial is picked up, counts, or is cleaned away" {
    picked_up() {
        start . held
        soon 60 test -e begun
        kill_tuner
        [ "$(trials_queued | wc -l)" = 1 ]
        (soon 120 event resumed && touch released) 3>&- &
        resume
        whole
        [ "$(wc -l <begun)" = 4 ]
    }
    ended_alone() {
        start . held
        soon 60 test -e begun
        kill_tuner
        touch released
        soon 60 no_trials
        resume
        whole
        [ "$(wc -l <begun)" = 4 ]
    }
    never_told() { # killed between sbatch's answer and the record of it: as if the last line were missing
        start . held
        soon 60 test -e begun
        kill_tuner
        touch released
        sed -i '/"event":"submitted"/,$d' "$dir/journal.jsonl"
        printf '{"t":1795979049.9768653,"event":"subm' >>"$dir/journal.jsonl"
        resume
        whole
        [ "$(wc -l <begun)" = 4 ]
    }
    at_once picked_up ended_alone never_told
}

@test "kill -9 of the tuner while a trial is pending: it starts for a new tuner only" {
    block
    start . 0.3 --licenses=dtlic
    soon 60 event submitted
    kill_tuner
    [ "$(trials_queued | wc -l)" = 1 ]
    run sbatch --parsable --dt-tune --dt-resume="$dir" train.sh
    second=$output
    soon 60 event resumed
    run cat "$dir/tuner.json"
    [ "$output" = "{\"version\":1,\"job\":$second}" ]
    job=$second kill_tuner
    unblock
    soon 60 no_trials
    [ ! -e begun ]
    grep -q "tuning job $second is gone" "$dir/trials/0001/output.log"
    resume
    whole
    grep -q '^ *1 run 1 ended (no tuner), no fault of the configuration: it is repeated' "$output"
}

# time_is_up JOB: it has reached its time limit, as Slurm sees within 30 s. "Now" is refused when it comes to slurmctld a
# second later.
time_is_up() {
    soon 60 scontrol update job "$1" EndTime=now
}

@test "requeue of the tuning job; time limits; a script that takes its time to end" {
    requeue() {
        start . held
        soon 60 test -e begun
        node=$(node_of "$job")
        scontrol requeue "$job"
        soon 150 no_trials
        touch released
        requeued "$node"
        soon 120 job_ended "$job"
        whole
        grep -q "^resumed with 1 trials, 0 of them finished" "slurm-$job.out"
    }
    time_limit() {
        start . held
        soon 60 test -e begun
        time_is_up "$job"
        soon 150 job_ended "$job"
        soon 150 no_trials
        sound
        grep -q '^stopped: interrupted: the tuner was told to end (signal 15)' "slurm-$job.out"
        grep -qF "go on with: dt-sbatch --dt-tune --dt-resume=$dir $dir/script" "slurm-$job.out"
        sed -i 's/^1) held/1) sleep 0.2/' "$dir/script" # what the study began with counts
        resume
        grep -q "^the study goes on with the script that it began with, $dir/script" "$output"
        whole
    }
    stubborn() { # the first run is told to end, works on for a while, and ends well
        script 0.2
        sed -i -e '2a trap "touch told" TERM' -e 's/^1) .*/1) until [ -e told ]; do sleep 0.05; done; sleep 2 ;;/' train.sh
        start . 0.2
        soon 60 test -e begun
        scancel "$job"
        soon 120 job_ended "$job"
        resume
        # it came to its end, but told to end as it was, that does not count; and it never ran beside its repetition
        [ "$(cut -d' ' -f1 over | tr '\n' ' ')" = "1 1 2 3 4 " ]
        [ "$(head -1 over | cut -d' ' -f3)" \< "$(sed -n 2p begun | cut -d' ' -f3)" ]
        grep -q '"told":true' "$dir/trials/0001/end-1.json"
    }
    trial_limit() {
        start . "0.2 held"
        soon 90 lines begun 2
        time_is_up "$(trial_job 2)"
        soon 150 event ended 2
        [ "$(ended 2 cause)" = "time limit" ]
        cancelled
    }
    at_once requeue time_limit stubborn trial_limit
}

all_idle() {
    [ "$(sinfo -h -N -p main -t idle -o %N | wc -l)" = 8 ]
}

@test "slurmctld killed and restarted: the study goes on" {
    start . "held held" --dt-parallel=2
    soon 90 lines begun 2
    state_saved
    restart_slurmctld 3 touch released
    soon 120 event finished
    soon 60 is_state "$job" COMPLETED
    whole
    [ "$(wc -l <begun)" = 4 ]
    soon 60 all_idle
}

@test "trials that fail: each for its reason, and the study goes on" {
    exits() {
        script 0.2
        sed -i '2a case $DT_TRIAL in 2) echo bad data >&2; exit 3 ;; 3) echo crash; kill -SEGV $$ ;; esac' train.sh
        start . 0.2
        finished
        [ "$(ended 1 cause),$(ended 2 cause),$(ended 3 cause),$(ended 4 cause)" = "ok,exit code,exit code,ok" ]
        [ "$(ended 2 exit_code),$(ended 3 signal)" = "3,11" ]
        grep -A1 '^ *2 .*failed: exit code 3$' "$output" | grep -q '^ *| bad data$'
        grep -A1 '^ *3 .*failed: signal 11$' "$output" | grep -q '^ *| crash$'
        grep -q '4 trials (2 failed)' "$output"
    }
    all_fail() {
        printf '#!/bin/sh\n#SBATCH -n 2 --mem-per-cpu=10\necho begun >>begun\nsrun sh -c "echo no data set; exit 7"\n' >train.sh
        start . 0.2
        finished FAILED
        [ "$(wc -l <begun)" = 3 ]
        grep -q '^stopped: failures: the first 3 trials all failed' "$output"
        [ "$(grep -c '^ *| no data set$' "$output")" = 3 ]
        grep -q '^ *| worker [01] on h[0-9]*: exit code 7$' "$output"
        scontrol -o show job "$job" | grep -q ' ExitCode=1:0 '
    }
    node_down() {
        start . "0.2 held" --exclusive
        soon 90 lines begun 2
        node=$(scontrol -o show job "$(trial_job 2)" | sed -nE 's/.* NodeList=(h[0-9]+) .*/\1/p')
        scontrol update NodeName="$node" State=DOWN Reason=test
        soon 60 event ended 2
        scontrol update NodeName="$node" State=RESUME || true # it may be back already
        [ "$(ended 2 cause)" = "node failure" ]
        touch released
        finished
        [ "$(ended 2 cause | tail -1)" = ok ]
        [ "$(ended 2 run)" = $'1\n2' ]
        grep -q '^ *2 run 1 ended (node failure), no fault of the configuration: it is repeated' "$output"
    }
    cancelled_trial() {
        start . "0.2 held"
        soon 90 lines begun 2
        scancel "$(trial_job 2)"
        soon 60 event ended 2
        [ "$(ended 2 cause)" = cancelled ]
        scancel "$job"
        gone
    }
    refused() { # what only Slurm's answer tells, as nothing of it was known before
        mkdir bin
        printf '#!/bin/sh\ncase $* in *trials*) set -- --licenses=nonsense "$@" ;; esac\nexec %s "$@"\n' \
            "$(command -v sbatch)" >bin/sbatch
        chmod +x bin/sbatch
        PATH=$PWD/bin:$PATH SUBMIT=dt-sbatch start study 0.2
        finished FAILED
        [ ! -e begun ]
        [ "$(ended 1 cause)" = "not schedulable" ]
        grep -q '^ *| sbatch: error: .*Invalid license specification' "$output"
    }
    never_starts() {
        mkdir bin # trial 2 is submitted only where it may start
        printf '#!/bin/sh\ncase $* in *trials/0002/*) until [ -e %s ]; do sleep 0.05; done ;; esac\nexec %s "$@"\n' \
            "$PWD/allowed" "$(command -v sbatch)" >bin/sbatch
        chmod +x bin/sbatch
        PATH=$PWD/bin:$PATH SUBMIT=dt-sbatch start . 0.2 --partition=other --nodes=2 --hold
        scontrol update PartitionName=other MaxNodes=1
        scontrol release "$job"
        soon 60 event ended
        scontrol update PartitionName=other MaxNodes=UNLIMITED
        touch allowed
        [ "$(ended 1 cause)" = "not schedulable" ]
        [[ "$(ended 1 text)" == PartitionNodeLimit:* ]]
        finished
        [ "$(cut -d' ' -f1 begun | tr '\n' ' ')" = "2 3 4 " ]
    }
    limit() { # as where a user may have only so many jobs
        mkdir bin
        cat >bin/sbatch <<END
#!/bin/sh
case \$* in
*trials*) [ -e "\$0.full" ] || {
    touch "\$0.full"
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)" >&2
    exit 1
} ;;
esac
exec $(command -v sbatch) "\$@"
END
        chmod +x bin/sbatch
        PATH=$PWD/bin:$PATH SUBMIT=dt-sbatch start study 0.2
        finished
        whole
        grep -q '^ *1 waits: sbatch: error: .*job submit limit' "$output"
    }
    at_once exits all_fail node_down cancelled_trial refused never_starts limit
}

# most_at_once: of how many trials the times in begun and over overlap at most.
most_at_once() {
    { sed 's/^/+1 /' begun && sed 's/^/-1 /' over; } | sort -k4n | awk '{ n += $1; if (n > max) max = n } END { print max }'
}

# value N KEY: of trial N in the report.
value() {
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
for t in json.load(sys.stdin)["trials"]:
    if t["trial"] == int(sys.argv[1]):
        print(t[sys.argv[2]])' "$@"
}

# at N EVENT: when the journal says that this happened to trial N.
at() {
    sed -n "s/^{\"t\":\([0-9.]*\),\"event\":\"$2\",\"trial\":$1,.*/\1/p" "$dir/journal.jsonl"
}

# between VALUE LOW HIGH: of expressions. What is measured must lie between what other clocks say before and after: that holds
# on a machine of any speed.
between() {
    awk "BEGIN { printf \"%g <= %g <= %g\\n\", $2, $1, $3; exit !($2 <= $1 && $1 <= $3) }"
}

@test "trials at once, deadline, target and objectives are what they say" {
    three() {
        start . "held held" --dt-parallel=3
        soon 90 lines begun 3
        touch released
        finished
        whole
        [ "$(most_at_once)" = 3 ]
    }
    deadline() {
        start . "0.2 held" --dt-deadline=0:20
        finished
        grep -q '^stopped: deadline' "$output"
        [ "$(ended 2 cause)" = stopped ]
        [ "$(wc -l <over)" = 1 ]
    }
    target() {
        cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 2 --mem-per-cpu=10
begin=$EPOCHREALTIME
trap told=1 TERM # and what it writes is by the shell itself: a child would be ended, too
for i in 1 2 3 4 5 6; do
    sleep 0.4
    before=$EPOCHREALTIME
    dt-tune metric accuracy=0.$i
    [ $i != 3 ] || echo "$DT_TRIAL $begin $before $EPOCHREALTIME" >>there
done
until [ "$told" ]; do sleep 0.1; done
sleep 2
END
        start . 1 "--dt-target=accuracy>=0.3" --dt-max-configs=2
        finished
        [ "$(ended 2 cause)" = ok ] || [ "$(ended 2 cause)" = cancelled ] || [ "$(ended 2 cause)" = stopped ]
        grep -q '(target reached)' "$output"
        read -r _ begin before after < <(grep '^2 ' there)
        between "$(value 2 value)" "$before - $begin" "$after - $(at 2 submitted)"
    }
    accuracy() {
        script 0.2
        sed -i '2a dt-tune metric accuracy=0.1; dt-tune metric accuracy=0.$((5 + DT_TRIAL))' train.sh
        start . 0.2 --dt-objective=max:accuracy
        finished
        [ "$(value 1 value),$(value 4 value)" = 0.6,0.9 ]
        grep -q '^ *1. trial 4 ' "$output"
    }
    throughput() {
        script 0.2
        sed -i '/^note >>begun/a note >>t; dt-tune metric step=100; note >>t; sleep 1; note >>t; dt-tune metric step=300; note >>t' train.sh
        start . 0.2 --dt-objective=throughput
        finished
        for n in 1 4; do
            # shellcheck disable=SC2046
            set -- $(awk -v n=$n '$1 == n { print $3 }' t)
            between "$(value $n value)" "200 / ($4 - $1)" "200 / ($3 - $2)"
        done
    }
    cost() {
        start . "1 1" --dt-objective=cost
        finished
        for n in 1 2 3 4; do
            billing=$(scontrol -o show job "$(trial_job $n)" | sed -nE 's/.*[,=]billing=([0-9]+).*/\1/p')
            # shellcheck disable=SC2046
            set -- $(awk -v n=$n '$1 == n { print $3 }' begun over)
            between "$(value $n value)" "$billing * ($2 - $1)" "$billing * ($(at $n ended) - $(at $n submitted))"
        done
    }
    turnaround() {
        start . 1 --dt-objective=turnaround
        finished
        between "$(value 1 value)" "$(awk '$1 == 1 { print $3 }' over) - $(at 1 submitted)" "$(at 1 ended) - $(at 1 submitted)"
    }
    at_once three deadline target accuracy throughput cost turnaround
}
