#!/usr/bin/env bats
# Two loops on a real Slurm: trials that promise too little are stopped early, quality and speed are searched for side by
# side, a quality is asked for, and a study keeps to its node-hours.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 4 --cpus 4
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
    scancel -u "$(id -un)" 2>/dev/null || true
}

# study OPTION...: runs one to its end; output is its job's, dir its folder.
study() {
    local id
    id=$(sbatch --parsable --dt-tune "$@" train.sh)
    wait_for 120 job_ended "$id"
    dir=$PWD/dt-tune-$id
    output=$(<"slurm-$id.out")
    [ "$(job_state "$id")" = COMPLETED ] || {
        echo "$output"
        return 1
    }
}

# values KEY: of all trials, a line each, from the report.
values() {
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
for t in json.load(sys.stdin)["trials"]:
    print(t["trial"], t.get(sys.argv[1]))' "$1"
}

# are "1 ok 2 poor ...": so the trials ended; says what they were where not.
are() {
    [ "$(values status | xargs)" = "$1" ] || {
        values cause
        cat "$dir/journal.jsonl"
        return 1
    }
}

@test "trials that promise too little are stopped early" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
# trial 1 and those with lr=1 come to their end, the others would take half an hour
for epoch in 1 2 3 4 5 6 7 8 9; do
    dt-tune metric epoch=$epoch accuracy=0.${DT_PARAM_lr:-1}$epoch
    if [ "${DT_PARAM_lr:-1}" = 1 ]; then sleep 0.1; else sleep 200 || exit; fi # which may be told to end first
done
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}},
  "hyperparameters": {"lr": {"choices": [0, 1]}, "x": {"choices": [1, 2, 3]}},
  "objective": {"metric": "accuracy", "goal": "maximize"}, "layout": "packed",
  "search": {"algorithm": "grid", "repeats": 0, "max_configs": 4, "early_stop": {"rule": "asha", "min_step": 1}} }
END
    id=$(sbatch --parsable --dt-tune=spec.json train.sh)
    wait_for 120 job_ended "$id"
    dir=$PWD/dt-tune-$id
    are "1 ok 2 pruned 3 pruned 4 pruned"
    [ "$(values value | sed -n 2p)" = "2 0.01" ]
    grep -q '^ *2 .* lr=0 x=1  ended: stopped early$' "slurm-$id.out"
    grep -q '^ *| at step 1 1 of 1 others were better; one in 3 goes on$' "slurm-$id.out"
    wait_for 60 no_jobs
}

@test "what a trial comes to and how fast it works are learnt side by side" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 2 --mem-per-cpu=10M -t 5
# good where lr is small, fast where there are many workers, by its own clock, which no busy machine holds up
workers=$(sed -nE 's/.*"name":"worker","count":([0-9]+).*/\1/p' <<<"$DT_PLAN")
begun=$(($(date +%s) - 60))
for epoch in 1 2 3; do
    loss=$(awk -v lr="${DT_PARAM_lr:-0.5}" -v epoch=$epoch 'BEGIN { print lr + 1 / epoch }')
    echo "{\"epoch\": $epoch, \"loss\": $loss, \"time\": $((begun + epoch * (9 - 2 * workers)))}" >>"$DT_METRICS_FILE"
    # of what the tuner finds at once it takes the latest
    until grep -q "\"event\":\"metric\",\"trial\":$DT_TRIAL,.*\"text\":\"loss\",.*\"step\":$epoch" dt-tune-*/journal.jsonl; do
        sleep 0.05
    done
done
END
    study --dt-workers=1-4 --dt-ps=0 --dt-param=lr=0.001..1:log --dt-objective=min:loss --dt-max-configs=12 --dt-repeats=0
    grep -q '^objective: min:loss, search: joint ' <<<"$output"
    grep -q '^best hyperparameters: lr=' <<<"$output"
    grep -q '^fastest DT configuration: .*workers=4' <<<"$output"
    grep -q '^best configuration: .*workers=4 .*lr=' <<<"$output"
    # the later trials run on what is fast
    [ "$(dt-tune report "$dir" --format csv | tail -4 | cut -d, -f2 | sort -u)" = 4 ]
    grep -q '"workers":4' "$dir/best.json"
}

@test "a trial without the quality asked for is no good, however fast" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
# the last has the best quality, and takes longer than all before it
dt-tune metric accuracy=0.9${DT_PARAM_x:-6}
[ "${DT_PARAM_x:-6}" != 9 ] || sleep "$(sed -nE 's/.*"start":([0-9.]+).*"end":([0-9.]+).*/\1 \2/p' dt-tune-*/trials/*/end.json |
    awk '$2 - $1 > most { most = $2 - $1 } END { print most + 1 }')"
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"x": {"choices": [1, 4, 6, 9]}}, "quality": {"metric": "accuracy", "at_least": 0.95},
  "search": {"algorithm": "grid", "repeats": 0, "max_configs": 5} }
END
    id=$(sbatch --parsable --dt-tune=spec.json train.sh)
    wait_for 120 job_ended "$id"
    dir=$PWD/dt-tune-$id
    are "1 ok 2 poor 3 poor 4 ok 5 ok"
    grep -q '^ *2 .* x=1  ended: quality missed$' "slurm-$id.out"
    grep -q '^ *| the last value of accuracy was 0.91$' "slurm-$id.out"
    grep '^best configuration: ' "slurm-$id.out" | grep -v ' x=[149]$' # the job as submitted or x=6
    grep -q '^none of these is worse than another in run time, cost (billed seconds) and accuracy:$' "slurm-$id.out"
}

@test "a real training shows with an epoch what it is worth, and the best had them all" {
    local python=${PYTHON:-/usr/bin/python3} dir_examples=$BATS_TEST_DIRNAME/../../etc/examples
    "$python" -c 'import torch, sklearn' 2>/dev/null || skip "no python3 with torch and scikit-learn (PYTHON)"
    cp "$dir_examples"/{ps_train,ddp,train_common,dt_tune}.py .
    cp "$dir_examples/ps_async.sh" train.sh
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"epochs": {"choices": [1, 4], "fidelity": true}, "lr": {"choices": [0.0001, 0.01, 0.1]}},
  "objective": {"metric": "accuracy", "goal": "maximize"},
  "search": {"repeats": 0, "max_configs": 5, "min_configs": 5} }
END
    id=$(PYTHON=$python sbatch --parsable --dt-tune=spec.json -n 1 train.sh)
    wait_for 300 job_ended "$id"
    dir=$PWD/dt-tune-$id
    are "1 ok 2 ok 3 ok 4 ok 5 ok"
    # the job as submitted has all epochs, the next trial one, and the last, kept for that, all again
    values config | cut -d' ' -f2- | sed -nE "s/.*'epochs': ([0-9]).*/\1/p" >epochs
    [ "$(sed -n 1,2p epochs | xargs)" = "4 1" ]
    [ "$(sed -n 5p epochs)" = 4 ]
    grep -qE '^ *2 .* epochs=1 lr=[0-9.]+( [*])? \(cheap\)$' "slurm-$id.out"
    grep -qE '^cheap trials: [1-3] of these, below epochs=4, took ' "slurm-$id.out"
    grep -q '^best configuration: .*epochs=4 ' "slurm-$id.out"
    grep -q '"epochs":4' "$dir/best.json"
}

@test "a study keeps to its node-hours" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
[ "$DT_TRIAL" = 1 ] || sleep 60
END
    study --dt-workers=1-4 --dt-max-node-hours=0.002 # 7.2 s on one node
    grep -qE '^stopped: node-hours: 0[.]0[0-9]+ of 0[.]002 are spent$' <<<"$output"
    are "1 ok 2 void"
    wait_for 60 no_jobs
}
