#!/usr/bin/env bats
# One trial's metrics on a real Slurm, while it runs: by command, by the JSON-lines file, by text patterns; floods of them,
# and trainings that report something else than was expected.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 8 --cpus 8
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    work=$(mktemp -d "$BATS_TEST_TMPDIR/metrics.XXXXXX")
    cd "$work"
}

teardown() {
    # a test that failed half-way leaves some
    scancel -u "$(id -un)" 2>/dev/null || true
}

# spec SECTIONS: makes spec.json, for the usual pattern and objective unless SECTIONS say otherwise.
spec() {
    cat >spec.json <<END
{"dt": {"workers": [1, 2]},
 "metrics": {"patterns": {"accuracy": "accuracy[=: ]+([-+0-9.eE]+|nan)", "epoch": "epoch ([0-9]+)"}},
 "search": {"max_configs": 1, "repeats": 0}${1+, $1}}
END
}

maximize='"objective": {"metric": "accuracy", "goal": "maximize"}'

# start [OPTION...]: submits a study of spec.json whose script is standard input; job and dir are set.
start() {
    { printf '#!/bin/bash\n#SBATCH --ntasks=1 --mem-per-cpu=10M --job-name=t\n' && cat; } >train.sh
    job=$(sbatch --parsable --dt-tune=spec.json "$@" train.sh)
    dir=$PWD/dt-tune-$job
    output=$PWD/slurm-$job.out
}

# finished [STATE]: the tuning job has ended so (COMPLETED).
finished() {
    wait_for 120 job_ended "$job"
    [ "$(job_state "$job")" = "${1-COMPLETED}" ] || {
        cat "$output"
        return 1
    }
}

# held: for a script; it waits there until `release` is called.
# shellcheck disable=SC2016
held='touch waiting-$DT_TRIAL; until [ -e released ]; do sleep 0.1; done'

is_held() {
    wait_for 60 test -e waiting-1
}

release() {
    touch released
}

# trial N KEY: what the report has of a trial.
trial() {
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
for t in json.load(sys.stdin)["trials"]:
    if t["trial"] == int(sys.argv[1]):
        print(t.get(sys.argv[2], ""))' "$@"
}

# reports NAME: the journal's events of a metric of trial 1, as value@step#count.
reports() {
    /usr/bin/python3 - "$dir/journal.jsonl" "$1" <<'END'
import json, sys
for r in map(json.loads, open(sys.argv[1])):
    if r.get("event") == "metric" and r["trial"] == 1 and r["text"] == sys.argv[2]:
        print("%g@%s#%d" % (r.get("value", float("nan")), r.get("step", "-"), r["count"]))
END
}

# reported VALUE [NAME]: the journal has such a value of the metric (accuracy).
reported() {
    reports "${2-accuracy}" | grep -q "^$1@"
}

# said TEXT: the tuning job's output has one line with this text.
said() {
    [ "$(grep -cF -- "$1" "$output")" = 1 ] || {
        echo "not said once: $1" && cat "$output"
        return 1
    }
}

size_of() {
    stat -c %s "$1"
}

@test "text patterns see what script and tasks print, wherever it goes, to the last word" {
    plain() {
        spec "$maximize"
        start <<END
echo "accuracy: 0.1."
srun sh -c 'echo "epoch 1 accuracy: 0.2"; until grep -q 0.2 \$DT_TRIAL_DIR/output.log; do sleep 0.05; done; echo "accuracy 0.3" >&2'
$held
printf 'no accuracy\0\377\raccuracy=0.4\nepoch 2\nat last accuracy = 0.5'
END
        is_held
        wait_for 60 reported 0.3
        release
        finished
        [ "$(trial 1 value)" = 0.5 ]
        [ "$(reports accuracy | tail -1)" = "0.5@2#5" ]
        cmp "$dir/trials/0001/output.log" <(printf 'accuracy: 0.1.\nepoch 1 accuracy: 0.2\naccuracy 0.3\n'
            printf 'no accuracy\0\377\raccuracy=0.4\nepoch 2\nat last accuracy = 0.5')
        run ! grep -q '^ *|' "$output"
    }
    redirected() {
        spec "$maximize"
        start <<END
srun echo "accuracy=0.1" >first.txt
srun --output=second.txt sh -c 'echo "epoch 3"; printf "accuracy=0.2"'
srun sh -c 'echo accuracy=0.6; echo accuracy=0.3' | grep -v 6 | cat >third.txt
END
        finished
        [ "$(trial 1 value)" = 0.3 ]
        [ "$(reports accuracy | tail -1)" = "0.3@3#4" ]
        [ "$(cat first.txt)" = accuracy=0.1 ]
        [ "$(cat second.txt)" = $'epoch 3\naccuracy=0.2' ]
        [ "$(cat third.txt)" = accuracy=0.3 ]
    }
    two_roles() {
        spec "$maximize"
        sed -i 's/"workers": \[1, 2\]/"ps": [1], "workers": [2]/' spec.json
        start --ntasks=3 <<'END'
srun sh -c 'case $DT_ROLE in worker) echo accuracy=0.$((DT_ROLE_RANK + 7)) ;; *) sleep 600 ;; esac' >all.txt
echo accuracy=0.5
END
        finished
        [ "$(trial 1 value)" = 0.5 ]
        [ "$(reports accuracy | tail -1 | cut -d'#' -f2)" = 3 ]
    }
    at_once plain redirected two_roles
}

@test "the three ways beside each other; a step of one's own" {
    spec "$maximize"
    sed -i 's/"metrics": {/"metrics": {"step": "iteration", /' spec.json
    start <<END
dt-tune metric iteration=5 accuracy=0.1
$held
echo '{"accuracy": 0.2, "iteration": 6, "epoch": 1}' >>\$DT_METRICS_FILE
echo "accuracy=0.21"
END
    is_held
    wait_for 60 reported 0.1
    release
    finished
    [ "$(reports accuracy | head -1)" = "0.1@5#1" ]
    [ "$(reports accuracy | tail -1)" = "0.21@6#3" ]
    [ "$(trial 1 value)" = 0.21 ]
}

@test "a target that a pattern finds ends the trial while it runs" {
    spec
    start "--dt-target=accuracy>=0.9" <<'END'
date +%s.%N >begun
echo "accuracy=0.5 epoch 1"
sleep 1
date +%s.%N >there
echo "accuracy=0.93 epoch 2"
sleep 600
END
    finished
    [ "$(trial 1 cause)" = "target reached" ]
    grep -q '(target reached)' "$output"
    # it was seen some time after it was printed, however loaded the machine is
    awk -v value="$(trial 1 value)" -v begun="$(cat begun)" -v there="$(cat there)" \
        'BEGIN { print value, there - begun; exit !(value >= there - begun - 0.1 && value < 60) }'
    [ "$(reports accuracy | tail -1)" = "0.93@2#2" ]
}

# tuner_peak: the tuner's peak of memory in KiB.
tuner_peak() {
    local pid
    pid=$(pgrep -o -f "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")
    sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"
}

# small_peak BEFORE: since then it grew by no more than a look needs.
small_peak() {
    local room=16384 now
    ! ldd "$DT_BUILD/dt-tune" | grep -q libasan || room=524288 # which keeps what was freed
    now=$(tuner_peak)
    echo "peak: $1 KiB before, $now KiB now"
    [ "$now" -le $(($1 + room)) ]
}

# Prints lines for some seconds, as fast as disk and CPU allow, but no more than 160 MiB.
# shellcheck disable=SC2016
flood='for i in 1 2 3 4; do yes "$line" | head -c 41943040; sleep 0.5; done'

@test "a flood of metrics in the file: memory, journal and time stay bounded, and the end counts" {
    spec "$maximize"
    start <<END
$held
rm -f released
line='{"loss": 1, "accuracy": 0.5}'
{ $flood; } >>\$DT_METRICS_FILE
touch flooded
$held
echo >>\$DT_METRICS_FILE
dt-tune metric accuracy=0.75
END
    is_held
    before=$(tuner_peak)
    release
    wait_for 100 test -e flooded
    wait_for 60 reported 0.5
    small_peak "$before"
    release
    finished
    [ "$(trial 1 value)" = 0.75 ]
    [ "$(size_of "$dir/trials/0001/metrics.jsonl")" -gt 167772160 ]
    [ "$(size_of "$dir/journal.jsonl")" -lt 200000 ]
    said "metrics were reported faster than they could be read, and some were passed over; report less often"
}

@test "a flood of output: it is not slowed, memory, journal and metrics stay bounded, and the end counts" {
    spec "$maximize"
    start <<END
$held
rm -f released
line='accuracy=0.5 is no news'
{ $flood; }
touch flooded
$held
echo
echo accuracy=0.75
END
    is_held
    before=$(tuner_peak)
    release
    wait_for 100 test -e flooded
    wait_for 60 reported 0.5
    small_peak "$before"
    release
    finished
    [ "$(trial 1 value)" = 0.75 ]
    [ "$(size_of "$dir/trials/0001/output.log")" = $((167772160 + 15)) ]
    [ "$(size_of "$dir/journal.jsonl")" -lt 200000 ]
    [ "$(size_of "$dir/trials/0001/metrics.jsonl")" -lt 2000000 ]
    said "the output came faster than it can be searched for metrics, and some was passed over; print less, or report by dt-tune metric"
}

@test "more metrics than count, lines too long, a file that is no text" {
    many() {
        spec "$maximize"
        start <<'END'
for i in $(seq 200); do echo "{\"m$i\": 1}"; done >>$DT_METRICS_FILE
END
        finished FAILED
        said 'only the first 64 metrics count; "m65" and others were passed over'
        [ "$(grep -c '"event":"metric"' "$dir/journal.jsonl")" = 64 ]
        said 'accuracy was not reported; the pattern'
    }
    long() {
        spec "$maximize"
        start <<'END'
{ echo '{"accuracy": 0.1}'; printf '{"accuracy": 0.2%100000s}\n' ' '; } >>$DT_METRICS_FILE
printf '%100000s accuracy=0.3\n' x
END
        finished
        [ "$(trial 1 value)" = 0.1 ]
        said 'lines of metrics.jsonl longer than 64 KiB were passed over'
        said 'lines of output longer than 64 KiB were not searched for metrics'
    }
    garbage() {
        spec "$maximize"
        start <<'END'
{ head -c 100000 /bin/bash; printf '\n{"accuracy": 0.1}\n{"accuracy": 0.2}\n{"accuracy": 0.'; } >>$DT_METRICS_FILE
END
        finished
        [ "$(trial 1 value)" = 0.2 ]
        said 'metrics.jsonl has lines that are no JSON object, such as: ?ELF'
        said 'the last line of metrics.jsonl is not complete: {"accuracy": 0.'
    }
    no_newline() {
        spec "$maximize"
        start <<'END'
printf '{"accuracy": 0.1}\n{"accuracy": 0.2}' >>$DT_METRICS_FILE
END
        finished
        [ "$(trial 1 value)" = 0.2 ]
        run ! grep -q '^ *|' "$output"
    }
    at_once many long garbage no_newline
}

@test "a metric that never comes, is no number, or comes in two forms" {
    never() {
        spec "$maximize"
        start <<<'echo "epoch 1, acc 0.9"; echo "accuracy: excellent"'
        finished FAILED
        said 'accuracy was not reported; the pattern "accuracy[=: ]+([-+0-9.eE]+|nan)" matched no line with a number; reported: epoch'
        said 'the pattern of accuracy also matched "e", which is no number'
        [ "$(trial 1 cause)" = "no metric" ]
    }
    nan() {
        spec "$maximize"
        start <<<'echo accuracy=0.5; echo accuracy=nan'
        finished FAILED
        said 'the last value of accuracy was not a finite number'
    }
    nan_in_file() {
        spec "$maximize"
        start <<<"printf '%s\n' '{\"accuracy\": 0.5}' '{\"accuracy\": NaN}' >>\$DT_METRICS_FILE"
        finished FAILED
        said 'the last value of accuracy was not a finite number'
    }
    per_cent() {
        spec "$maximize"
        sed -i 's/"max_configs": 1/"max_configs": 2/' spec.json
        start <<<'echo accuracy=0.5; echo "accuracy: 93%"'
        finished
        [ "$(trial 1 value),$(trial 2 value)" = 0.5,0.5 ]
        said 'accuracy is printed both with and without a per cent sign; only those without it count, like the first; let its pattern match one form'
    }
    two_ways() {
        spec "$maximize"
        start <<'END'
echo accuracy=93
until grep -qs 93 "$DT_METRICS_FILE"; do sleep 0.05; done
dt-tune metric accuracy=0.93
END
        finished
        [ "$(trial 1 value)" = 0.93 ]
        said 'accuracy comes from two places that differ: at last 0.93 by metrics.jsonl, 93 by its pattern; both count, so take one out'
    }
    text() {
        spec "$maximize"
        start <<<"echo '{\"accuracy\": \"93%\"}' >>\$DT_METRICS_FILE"
        finished FAILED
        said 'accuracy was reported as "93%", which is no number; write it as one, without quotes or signs'
    }
    missed() {
        spec
        start "--dt-target=accuracy>=0.9" <<<'echo epoch 1 accuracy=0.5'
        finished FAILED
        [ "$(trial 1 cause)" = "target missed" ]
        said 'the last value of accuracy was 0.5'
    }
    at_once never nan nan_in_file per_cent two_ways text missed
}

@test "a tuner that is killed and resumed counts each metric once" {
    spec "$maximize"
    start <<END
for i in 1 2 3; do echo "epoch \$i accuracy=0.\$i"; done
$held
echo "accuracy=0.4"
END
    is_held
    wait_for 60 reported 0.3
    kill -KILL "$(pgrep -o -f "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")"
    wait_for 120 job_ended "$job"
    second=$(sbatch --parsable --dt-tune --dt-resume="$dir" train.sh)
    wait_for 60 grep -q '"event":"resumed"' "$dir/journal.jsonl"
    release
    wait_for 120 job_ended "$second"
    [ "$(job_state "$second")" = COMPLETED ]
    [ "$(trial 1 value)" = 0.4 ]
    [ "$(reports accuracy | tail -2)" = $'0.3@3#3\n0.4@3#4' ]
}
