#!/usr/bin/env bats
# Population-based training on a real Slurm: the worst member's place goes on from the best one's checkpoint.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    # a tuner that is told to end has time to say so, however busy the machine
    cluster_up --nodes 4 --cpus 4 --conf KillWait=30
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

# event KIND [TEXT]: the journal has such a record, with the text in it.
event() {
    grep "\"event\":\"$1\"" "$dir/journal.jsonl" 2>/dev/null | grep -qF -- "${2-}"
}

# reported TRIAL STEP: the journal has a value of that trial at that step or beyond.
reported() {
    [ -e "$dir/journal.jsonl" ] && /usr/bin/python3 - "$dir/journal.jsonl" "$@" <<'END'
import json, sys
for line in open(sys.argv[1]):
    if not line.endswith("\n"):
        break
    r = json.loads(line)
    if r.get("event") == "metric" and r["trial"] == int(sys.argv[2]) and r.get("step", -1) >= float(sys.argv[3]):
        sys.exit(0)
sys.exit(1)
END
}

# Ends the tuner's own process as a crash would.
kill_tuner() {
    kill -KILL "$(pgrep -of "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$1/slurm_script")"
    wait_for 60 job_ended "$1"
}

@test "a member that is behind gives its place to one that goes on from the best" {
    # the model is a number that lr is added to at each step; the slow one waits until the others are ahead
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
lr=${DT_PARAM_lr:-2} model=$DT_CHECKPOINT_DIR/model step=0 x=0
[ ! -e "$model" ] || read -r step x <"$model"
while [ "$step" -lt 30 ]; do
    [ "$lr $step" != "1 9" ] || until [ -e ahead ]; do sleep 0.05; done
    step=$((step + 1)) x=$((x + lr))
    echo "$step $x" >"$model.tmp" && mv "$model.tmp" "$model"
    dt-tune metric "epoch=$step" "gain=$x"
    [ "$step" != 1 ] || until [ -e all ]; do sleep 0.05; done
    [ "$step" != 10 ] || until [ -e go ]; do sleep 0.05; done
done
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"lr": {"choices": [1, 2, 4, 8, 16], "default": 2}},
  "objective": {"metric": "gain", "goal": "maximize"},
  "search": {"algorithm": "grid", "seed": 3, "parallel": 4,
             "early_stop": {"rule": "pbt", "interval": 10, "max_step": 20, "resample": 0}} }
END
    id=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$id
    for trial in 1 2 3 4; do
        wait_for 60 reported $trial 1
    done
    touch all
    for trial in 1 3 4; do
        wait_for 60 reported $trial 10
    done
    touch ahead
    wait_for 60 event created '"parent":4,"instead":2'
    wait_for 60 reported 5 11
    touch go
    wait_for 60 job_ended "$id"
    output=$(<"slurm-$id.out")
    echo "$output"
    [ "$(job_state "$id")" = COMPLETED ]
    grep -q '^population: 4 members, every 10 steps the worst 25 % give way ' <<<"$output"
    grep -q '^ *2 .* lr=1  ended: stopped early$' <<<"$output"
    grep -q '^ *| at step 10 3 of 3 others were better$' <<<"$output"
    grep -q '^ *5 .* lr=16 \* (goes on from trial 4, lr 8 -> 16)$' <<<"$output"
    grep -q '^stopped: population: all 4 members are over$' <<<"$output"
    grep -q '^     from step 0 *lr=8 (trial 4)$' <<<"$output"
    grep -q '^     from step 10 *lr=16 (trial 5)$' <<<"$output"
    [ "$(head -1 "$dir/trials/0005/metrics.jsonl" | grep -c '"epoch":11')" = 1 ]
    [ "$(cat "$dir/trials/0005/checkpoint/model")" = "30 400" ]
    grep -q '"from_step":10,"trial":5' "$dir/schedule.json"
    grep -q '"checkpoint":"trials/0005/checkpoint"' "$dir/schedule.json"
    dt-tune report "$dir" --format json | grep -q '"parent":4'
    grep -q '^# The best model came from a schedule' "$dir/best.sh"
    sbatch --wait "$dir/best.sh"
    wait_for 60 no_jobs
}

# two_members: a study of two without checkpoints; once `ahead` is there the second gives way, and at `go` all end.
two_members() {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
lr=${DT_PARAM_lr:-2}
for step in 1 2; do
    [ "$lr $step" != "1 2" ] || until [ -e ahead ]; do sleep 0.05; done
    dt-tune metric "epoch=$step" "gain=$((lr * step))"
    [ "$step" != 2 ] || until [ -e go ]; do sleep 0.05; done
done
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"lr": {"choices": [1, 2], "default": 2}}, "objective": {"metric": "gain", "goal": "maximize"},
  "search": {"algorithm": "grid", "parallel": 2, "max_configs": 3, "early_stop": {"rule": "pbt", "interval": 2}} }
END
    id=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$id
    wait_for 60 reported 1 2
    wait_for 60 reported 2 1
}

@test "the place of a member that failed goes on from the checkpoint of the best" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH -n 1 --mem-per-cpu=10M -t 5
model=$DT_CHECKPOINT_DIR/model step=0
[ ! -e "$model" ] || read -r step <"$model"
while [ "$step" -lt 4 ]; do
    step=$((step + 1))
    echo "$step" >"$model.tmp" && mv "$model.tmp" "$model"
    dt-tune metric "epoch=$step" "gain=$((${DT_PARAM_lr:-2} * step))"
    [ "$DT_TRIAL $step" != "2 1" ] || { until [ -e fail ]; do sleep 0.05; done && exit 3; }
    [ "$step" != 2 ] || until [ -e go ]; do sleep 0.05; done
done
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"lr": {"choices": [1, 2], "default": 2}}, "objective": {"metric": "gain", "goal": "maximize"},
  "search": {"algorithm": "grid", "parallel": 2, "max_configs": 3, "early_stop": {"rule": "pbt", "interval": 10}} }
END
    id=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$id
    wait_for 60 reported 1 2
    wait_for 60 reported 2 1
    touch fail
    wait_for 60 event created '"parent":1,"instead":2'
    wait_for 60 reported 3 3
    touch go
    wait_for 60 job_ended "$id"
    cat "slurm-$id.out"
    [ "$(job_state "$id")" = COMPLETED ]
    grep -q '^ *2 .*  failed: exit code 3$' "slurm-$id.out"
    grep -q '^ *3 .* (goes on from trial 1[,)]' "slurm-$id.out"
    [ "$(head -1 "$dir/trials/0003/metrics.jsonl" | grep -c '"epoch":3')" = 1 ]
}

@test "a parent without a checkpoint: the new member begins from nothing, and the report says so" {
    two_members
    touch ahead
    wait_for 60 event created '"parent":1,"instead":2'
    wait_for 60 reported 3 1
    touch go
    wait_for 60 job_ended "$id"
    grep -q '^ *3 .*(trial 1 has written no checkpoint: it began from nothing)$' "slurm-$id.out"
    [ ! -e "$dir/schedule.json" ]
}

@test "a checkpoint that cannot be copied is an outcome of the trial" {
    two_members
    touch "$dir/trials/0003" # where its folder should be
    touch ahead
    wait_for 60 event ended '"trial":3,'
    touch go
    wait_for 60 job_ended "$id"
    [ "$(job_state "$id")" = COMPLETED ]
    grep -q '^ *3 .*  ended: checkpoint not copied$' "slurm-$id.out"
    grep -q '^ *| .*trials/0003: cannot create the directory: a file of that name is there$' "slurm-$id.out"
    grep -q '^stopped: population: all 2 members are over$' "slurm-$id.out"
}

@test "a real training: a checkpoint is gone on from while its trial runs, also after kill -9 of the tuner" {
    "${PYTHON:-python3}" -c 'import torch, sklearn' 2>/dev/null || skip "no python3 with torch and scikit-learn (PYTHON)"
    cp "$BATS_TEST_DIRNAME"/../../etc/examples/*.{sh,py} .
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "layout": "packed",
  "hyperparameters": {"lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": true}},
  "objective": {"metric": "loss", "goal": "minimize"},
  "search": {"algorithm": "sobol", "seed": 1, "parallel": 4, "early_stop": {"rule": "pbt", "interval": 1}} }
END
    # the trials end by themselves long after this test
    id=$(PYTHONDONTWRITEBYTECODE=1 sbatch --parsable --dt-tune=spec.json ddp.sh --epochs 100000 --checkpoint-every 5 --log-every 5)
    dir=$PWD/dt-tune-$id
    wait_for 120 event created '"parent":'
    read -r child parent < <(sed -nE 's/.*"event":"created","trial":([0-9]+),.*"parent":([0-9]+).*/\1 \2/p' "$dir/journal.jsonl")
    wait_for 60 event started "\"trial\":$child,"
    kill_tuner "$id"
    before=$(grep -c '"event":"created"' "$dir/journal.jsonl")
    second=$(sbatch --parsable --dt-tune --dt-resume="$dir" ddp.sh)
    wait_for 60 event resumed
    wait_for 60 reported "$child" 0
    more() { [ "$(grep -c '"event":"created"' "$dir/journal.jsonl")" -gt "$before" ]; }
    wait_for 120 more
    [ "$(job_state "$second")" = RUNNING ]
    # it went on where the parent's checkpoint was, and so did its loss
    /usr/bin/python3 - "$dir" "$child" "$parent" <<'END'
import json, re, sys
from pathlib import Path
folder, child, parent = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def course(trial): # of its first run: one that looks for the tuning job just when there is none is run again
    first = min((folder / f"trials/{trial:04d}").glob("metrics*.jsonl"))
    return [json.loads(l) for l in open(first) if l.endswith("\n")]
log = (folder / f"trials/{child:04d}/output.log").read_text()
resumed = int(re.search(r"resumed at step (\d+)", log).group(1))
first, theirs = course(child)[0], course(parent)
assert resumed >= 5 and first["step"] > resumed, (resumed, first)
assert first["loss"] < theirs[0]["loss"], (first, theirs[0])
created = [json.loads(l) for l in open(folder / "journal.jsonl") if '"event":"created"' in l]
one = next(r for r in created if r["trial"] == child)
assert one["config"]["lr"] != next(r for r in created if r["trial"] == parent)["config"]["lr"]
END
    scancel "$second"
    wait_for 60 job_ended "$second"
    grep -q "^resumed with $before trials" "slurm-$second.out"
    grep -q "^go on with: dt-sbatch --dt-tune --dt-resume=" "slurm-$second.out"
}

@test "what cannot work is refused before anything is submitted" {
    printf '#!/bin/bash\n#SBATCH -n 1\ntrue\n' >train.sh
    refuse() { # EARLY_STOP REST-OF-SEARCH SECTIONS WORDS
        printf '{"search": {"early_stop": %s%s}%s}\n' "$1" "$2" "$3" >spec.json
        run -1 sbatch --dt-tune=spec.json train.sh
        grep -qF -- "$4" <<<"$output" || {
            echo "$output"
            return 1
        }
    }
    hyper=', "objective": {"metric": "loss", "goal": "minimize"}, "hyperparameters": {"lr": {"low": 0.1, "high": 1}}'
    refuse '"pbt"' ', "parallel": 4' "$hyper" 'search.early_stop: "interval" is missing'
    refuse '{"rule": "pbt", "interval": 1}' '' "$hyper" 'let "parallel" be 2 at least'
    refuse '{"rule": "pbt", "intervall": 1}' ', "parallel": 4' "$hyper" 'did you mean "interval"'
    printf 'lr,loss\n0.5,1\n' >t.csv
    printf '{"search": {"parallel": 4, "early_stop": {"rule": "pbt", "interval": 1}}, "replay": {"objective": "loss"}%s}\n' "$hyper" >spec.json
    run -2 dt-tune simulate --spec=spec.json --table=t.csv
    grep -q 'pbt cannot be simulated' <<<"$output"
}
