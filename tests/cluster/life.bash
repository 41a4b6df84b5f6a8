# Studies of four trials whose life is disturbed; see 09-lifecycle.bats. Loaded after common.bash.
# shellcheck shell=bash disable=SC2154

# What all studies have in common: 4 trials one after the other, the same in each.
common_options="--dt-workers=1-3 --dt-param=lr={1,2,3,4} --dt-max-configs=4"

takes() {
    [ "$1" = held ] && echo held || echo "sleep $1"
}

# script SECONDS [SECONDS]: makes train.sh, which notes in `begun` and `over` when it ran as which trial and job; it takes
# so long as trial 1, and as the others (0.2). "held" instead of a number: until there is a file `released`.
script() {
    cat >train.sh <<END
#!/bin/bash
#SBATCH --ntasks=2 --mem-per-cpu=60M --job-name=t
note() {
    echo "\$DT_TRIAL \$SLURM_JOB_ID \$(date +%s.%N)"
}
note >>begun
case \$DT_PLAN in
*'"name":"ps"'*) srun true ;; # servers must have been started, or the trial is no result
esac
held() { # what has to be seen while a trial runs must not depend on how fast it is seen
    until [ -e released ]; do sleep 0.05; done
}
case \$DT_TRIAL in
1) $(takes "$1") ;;
*) $(takes "${2-0.2}") ;;
esac
note >>over
END
}

# start FOLDER SECONDS [OPTION...]: submits a study of such a script, or of the train.sh that is there; job and dir are set.
start() {
    mkdir -p "$1"
    cd "$1"
    export DT_TUNE_HISTORY=$PWD/history
    # shellcheck disable=SC2086
    [ -e train.sh ] || script $2
    shift 2
    # shellcheck disable=SC2086
    job=$(${SUBMIT-sbatch} --parsable --dt-tune $common_options "$@" train.sh)
    dir=$PWD/dt-tune-$job
}

# soon SECONDS COMMAND...: like wait_for, but looks often.
soon() {
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        if [ $SECONDS -gt $end ]; then
            echo "$PWD: never came: $*" >&2
            circumstances
            return 1
        fi
        sleep 0.03
    done
}

# event NAME [N]: the journal has at least N such events (1).
event() {
    [ "$(grep -c "\"event\":\"$1\"" "$dir/journal.jsonl")" -ge "${2-1}" ]
}

lines() {
    [ "$(wc -l <"$1")" -ge "$2" ]
}

# trials_queued: prints the study's trials that Slurm has not ended.
trials_queued() {
    squeue -h -o %j | grep -F ".dt-${dir##*-}-" || true
}

no_trials() {
    no_jobs ".dt-${dir##*-}-"
}

# cancelled: ends the tuning job; afterwards nothing of the study is left and its journal is sound.
cancelled() {
    scancel "$job"
    gone
}

# A trial that its tuner had no time left to cancel looks once a minute whether that is gone.
gone() {
    soon 120 job_ended "$job"
    soon 150 no_trials
    sound
}

sound() {
    [ ! -e "$dir/journal.jsonl" ] || /usr/bin/python3 - "$dir/journal.jsonl" <<'END'
import json, sys
text = open(sys.argv[1]).read()
for line in text.split("\n")[:-1]:
    json.loads(line)
END
}

# resume [JOBID|DIR]: goes on with the study to its end.
resume() {
    local id
    id=$(sbatch --parsable --dt-tune --dt-resume="${1-$dir}" train.sh)
    soon 120 job_ended "$id"
    output=$PWD/slurm-$id.out
    [ "$(job_state "$id")" = COMPLETED ] || {
        cat "$output"
        return 1
    }
}

# configs: prints the study's configurations in order.
configs() {
    /usr/bin/python3 - "$dir/journal.jsonl" <<'END'
import json, sys
for r in map(json.loads, open(sys.argv[1])):
    if r.get("event") == "created":
        print(r["trial"], r["config"])
END
}

# plain_course, het_course: the undisturbed study, that the others of the file are compared with.
plain_course() {
    start . 0.3
    soon 120 job_ended "$job"
    configs >"$BATS_FILE_TMPDIR/configs-plain"
    whole
}

het_course() {
    start . 0.3 --dt-ps=1 --dt-layout=het
    soon 120 job_ended "$job"
    configs >"$BATS_FILE_TMPDIR/configs-het"
    sequence=het whole
}

# whole: the study has finished, all 4 trials ran to their end once, and are those that it would have tried anyway.
whole() {
    [ "$(cut -d' ' -f1 over | sort -n | tr '\n' ' ')" = "1 2 3 4 " ] || {
        echo "$PWD: over:" && cat over && cat "$dir/journal.jsonl" && tail -n 5 "$dir"/trials/*/output.log
        return 1
    }
    [ "$(tail -1 "$dir/journal.jsonl" | grep -c '"event":"finished"')" = 1 ]
    diff "$BATS_FILE_TMPDIR/configs-${sequence-plain}" <(configs) || {
        cat "$dir/journal.jsonl"
        return 1
    }
    soon 60 no_trials
}

is_state() {
    [ "$(job_state "$1")" = "$2" ]
}

# trial_job N: the job of trial N's last run. It may have begun before there is a record of it.
trial_job() {
    soon 60 grep -q "\"event\":\"submitted\",\"trial\":$1," "$dir/journal.jsonl"
    sed -n "s/.*\"event\":\"submitted\",\"trial\":$1,.*\"job\":\([0-9]*\).*/\1/p" "$dir/journal.jsonl" | tail -1
}

# ended N KEY: what the record of trial N's end says.
ended() {
    /usr/bin/python3 - "$dir/journal.jsonl" "$@" <<'END'
import json, sys
for r in map(json.loads, open(sys.argv[1])):
    if r.get("event") == "ended" and r["trial"] == int(sys.argv[2]):
        print(r.get(sys.argv[3], ""))
END
}

# finished [STATE]: the tuning job has ended so (COMPLETED); output is set.
finished() {
    output=$PWD/slurm-$job.out
    soon 120 job_ended "$job"
    is_state "$job" "${1-COMPLETED}"
    sound
    soon 60 no_trials
}

# state_saved: slurmctld has saved what it knows by now, which it does within 5 s of a change. What it writes now it may have
# gathered before: so by what it saves, not by when.
state_saved() {
    local mark=mark-$RANDOM$RANDOM
    scontrol update job "$(trial_job 1)" Comment=$mark
    soon 60 grep -qaF $mark "$DT_CLUSTER_DIR/state/job_state"
}

# requeued NODE: the tuning job, which was on that node, has been restarted and goes on.
requeued() {
    again() {
        sleep 0.2
        start_again "$job" "$1"
        event resumed
    }
    soon 120 again "$1"
}

# daemon NAME COMMAND...: starts it as one of the cluster's.
daemon() {
    (
        cd "$DT_CLUSTER_DIR/log"
        exec setsid "${@:2}"
    ) </dev/null >>"$DT_CLUSTER_DIR/log/$1.out" 2>&1 3>&- &
    echo "$1 $! $(sed -E 's/.*\) //' "/proc/$!/stat" | cut -d' ' -f20)" >>"$DT_CLUSTER_DIR/run/pids"
    disown
}

# restart_slurmctld SECONDS [COMMAND...]: kills it, runs the command, and starts it again after so long.
restart_slurmctld() {
    local pid
    pid=$(awk '$1 == "slurmctld" { print $2 }' "$DT_CLUSTER_DIR/run/pids" | tail -1)
    kill -KILL "$pid"
    "${@:2}"
    sleep "$1"
    daemon slurmctld slurmctld -D -f "$SLURM_CONF"
    soon 60 scontrol ping
}
