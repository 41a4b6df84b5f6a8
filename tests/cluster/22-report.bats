#!/usr/bin/env bats
# What people look at: the page, the live view, squeue, the history and what other programs read of it, the helpers for
# programs, and the doctor.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true python=${PYTHON:-/usr/bin/python3}
    cluster_up --nodes 4 --cpus 4 --mem 4096
    [ -z "${DT_CLUSTER_MISSING-}" ] || return 0
    # One study that most tests look at: a metric, hyperparameters, a trial that fails, the helper module.
    export study common_history=$BATS_FILE_TMPDIR/history DT_TUNE_HISTORY=$BATS_FILE_TMPDIR/history
    cd "$BATS_FILE_TMPDIR"
    cp "$BATS_TEST_DIRNAME/../../etc/examples/dt_tune.py" .
    cat >train.py <<'END'
import dt_tune

lr, opt = dt_tune.param("lr", 0.1), dt_tune.param("opt", "sgd")
assert dt_tune.trial() > 0 and dt_tune.restarts() == 0 and dt_tune.checkpoint_dir().endswith("checkpoint")
assert isinstance(lr, float) and dt_tune.param("nothing", 7) == 7
for epoch in range(3):
    dt_tune.report(epoch=epoch + 1, loss=abs(lr - 0.02) + (opt == "adam") / (epoch + 2))
if lr > 0.9:
    raise SystemExit("too large")
END
    printf '#!/bin/bash\n#SBATCH --ntasks=1 --mem-per-cpu=50M --job-name=%s\nexec %s train.py\n' \
        '"<b>&t"' "$python" >train.sh
    cat >spec.json <<'END'
{"dt": {"workers": [1, 2]}, "objective": {"metric": "loss", "goal": "minimize"}, "layout": "packed",
 "hyperparameters": {"lr": {"low": 0.001, "high": 1.0, "log": true}, "opt": ["sgd", "adam"]},
 "search": {"max_configs": 8, "min_configs": 8, "repeats": 0, "parallel": 4}}
END
    study=$(sbatch --parsable --dt-tune=spec.json train.sh)
    wait_for 120 job_ended "$study"
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    export DT_TUNE_HISTORY=$common_history
    cd "$BATS_TEST_TMPDIR"
    dir=$BATS_FILE_TMPDIR/dt-tune-$study
}

# What a test that failed half-way leaves.
teardown() {
    [ -z "${DT_CLUSTER_MISSING-}" ] || return 0
    tmux -S "$BATS_TEST_TMPDIR/tmux" kill-server 2>/dev/null || true
    [ -z "${other-}" ] || "$BATS_TEST_DIRNAME/dt-cluster" down "$other"
    scancel --me
}

@test "a study leaves a page with its data, which fetches nothing" {
    [ -s "$dir/report.html" ] || cat "$BATS_FILE_TMPDIR/slurm-$study.out"
    run ! grep -q 'no report.html' "$BATS_FILE_TMPDIR/slurm-$study.out"
    dt-tune report "$dir" --format json >report.json
    "$BATS_TEST_DIRNAME/page-check" "$dir/report.html" report.json
    dt-tune report "$dir" --format html >page.html
    cmp page.html "$dir/report.html"
    # the job's name is a word there, never HTML
    run ! grep -q '<b>&t' page.html
    grep -qF '\u003cb>&t' page.html
}

@test "the library of plots is the one that its page says" {
    cd "$BATS_TEST_DIRNAME/../../src/report/echarts"
    grep -q "sha256 of echarts.min.js: $(sha256sum <echarts.min.js | cut -d' ' -f1)" README
}

@test "without its data the report says what is missing, and the rest of it works" {
    mkdir -p bin && cp "$(command -v dt-tune)" bin/
    run -1 --separate-stderr bin/dt-tune report "$dir" --format html
    [[ $stderr == *"the page needs a file that comes with dt-tune"*"report.html: No such file"* ]]
    run -0 bin/dt-tune report "$dir"
}

@test "the helpers report and read parameters; outside of a trial they do nothing" {
    dt-tune report "$dir" --format json >report.json
    "$python" - report.json <<'END'
import json, sys
trials = json.load(open(sys.argv[1]))["trials"]
assert all(t["metrics"]["epoch"] == 3 for t in trials), trials
assert any(t["status"] == "ok" for t in trials)
END
    cp "$BATS_TEST_DIRNAME/../../etc/examples/dt_tune.h" .
    cat >prog.c <<'END'
#include "dt_tune.h"

int main(void)
{
    double lr = dt_param_double("lr", 0.5);
    if (strcmp(dt_param_text("opt-1", "none"), getenv("DT_TRIAL") ? "ad\"am" : "none") != 0)
        return 3;
    return dt_report(3, "step", (double)dt_param_long("steps", 7), "loss", lr, "bad", NAN) < 0;
}
END
    "${CC:-gcc}" -std=c99 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -o prog prog.c -lm
    ./prog
    DT_TRIAL=1 DT_METRICS_FILE=m.jsonl DT_PARAM_lr=1e-3 DT_PARAM_steps=1e2 DT_PARAM_opt_1='ad"am' ./prog
    DT_TRIAL=1 DT_METRICS_FILE=m.jsonl DT_PARAMS='{"steps": 1e2}' "$python" -c '
import sys
sys.path.insert(0, "'"$BATS_FILE_TMPDIR"'")
import dt_tune
dt_tune.report(step=dt_tune.param("steps", 1), loss=0.25)'
    "$python" - <<'END'
import json, math
a, b = map(json.loads, open("m.jsonl"))
assert a["step"] == 100 and a["loss"] == 0.001 and math.isnan(a["bad"]) and a["time"] > 1e9, a
assert b["step"] == 100 and b["loss"] == 0.25 and b["time"] > 1e9, b
END
    DT_PARAM_steps=1.5 run -2 ./prog
    [[ $output == *"parameter steps is 1.5"* ]]
}

@test "watch tells what the job's output does, ends with the study, and finds it by its job from anywhere" {
    export DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/history
    mkdir there
    cat >there/train.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=1 --mem-per-cpu=50M
until [ -e released ]; do sleep 0.1; done
END
    job=$(cd there && sbatch --parsable --dt-tune --dt-workers=1,2 --dt-layout=packed --dt-max-configs=2 train.sh)
    wait_for 60 test -e "there/dt-tune-$job/journal.jsonl"
    dt-tune watch "$job" >watched 2>&1 3>&- &
    watcher=$!
    wait_for 60 grep -q '^trial ' watched
    # where people look: squeue
    wait_for 60 comment_is "dt-tune: 0 of at most 2 trials"
    touch there/released
    wait "$watcher"
    wait_for 60 job_ended "$job"
    grep -q '^the best:' watched
    diff <(grep -E '^ +[0-9]+ ' watched) <(grep -E '^ +[0-9]+ ' "there/slurm-$job.out")
    run -2 dt-tune watch 999999
    [[ $output == *"there is neither a study's folder 999999"* ]]
}

# comment_is TEXT: what squeue shows of the tuning job.
comment_is() {
    [[ $(squeue -h -j "$job" -O 'Comment:100' | sed 's/ *$//') == "$1"* ]]
}

@test "watch on a terminal draws a screen that fits, and gives the terminal back" {
    command -v tmux >/dev/null || skip "tmux is not installed"
    export DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/history
    printf '#!/bin/bash\n#SBATCH --ntasks=1 --mem-per-cpu=50M\nuntil [ -e released ]; do sleep 0.1; done\n' >train.sh
    job=$(sbatch --parsable --comment=mine --dt-tune --dt-workers=1,2 --dt-layout=packed --dt-max-configs=2 train.sh)
    wait_for 60 test -e "dt-tune-$job/journal.jsonl"
    tmux -S "$PWD/tmux" -f /dev/null new-session -d -x 60 -y 15 "bash --norc" 3>&-
    tmux -S "$PWD/tmux" send-keys "PS1='shell> '; stty -a >before; clear" Enter "dt-tune watch $job" Enter
    wait_for 60 shows 'q: leave'
    wait_for 60 shows 'runs'
    comment_is mine
    tmux -S "$PWD/tmux" send-keys q
    wait_for 60 shows 'shell> '
    run ! shows 'q: leave'
    tmux -S "$PWD/tmux" send-keys "dt-tune watch $job" Enter
    wait_for 60 shows 'q: leave'
    tmux -S "$PWD/tmux" send-keys C-c
    wait_for 60 shows 'shell> '
    tmux -S "$PWD/tmux" send-keys "stty -a >after; touch checked" Enter
    wait_for 60 test -e checked
    cmp before after
    tmux -S "$PWD/tmux" kill-server
    touch released
    wait_for 60 job_ended "$job"
}

# shows TEXT: the terminal does.
shows() {
    tmux -S "$PWD/tmux" capture-pane -p | grep -qF -- "$1"
}

@test "Optuna opens what is exported, from the history and from the folder" {
    "$python" -c 'import optuna' 2>/dev/null || skip "python3-optuna is not installed"
    dt-tune history --show="$study" --format=optuna >a.log
    dt-tune report "$dir" --format=optuna >b.log
    dt-tune report "$dir" --format json >report.json
    for file in a.log b.log; do
        "$python" -W ignore - $file report.json <<'END'
import json, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.JournalStorage(optuna.storages.JournalFileStorage(sys.argv[1]))
report = json.load(open(sys.argv[2]))
study = optuna.load_study(study_name=report["study"], storage=storage)
assert study.direction == optuna.study.StudyDirection.MINIMIZE
assert abs(study.best_value - report["best"]["value"]) < 1e-12
assert study.best_params["lr"] == report["best"]["config"]["lr"], study.best_params
assert study.best_params["opt"] == report["best"]["config"]["opt"]
assert study.best_trial.user_attrs["trial"] == report["best"]["trial"]
states = sorted(t.state.name for t in study.trials)
assert states.count("FAIL") == sum(t["status"] == "failed" for t in report["trials"]), states
study.ask()  # and it can go on from there
END
    done
}

@test "the history: csv, import, compare, prune" {
    export DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/history
    cp -r "$common_history" history
    cp "$BATS_FILE_TMPDIR"/{spec.json,train.sh} .
    dt-tune history --show="$study" --format=csv >table.csv
    [ "$(head -1 table.csv)" = "trial,workers,lr,opt,status,value,duration_s,nodes,metric:epoch,metric:loss" ]
    # as a later study of the same program would be
    dt-tune history --import=table.csv --spec=spec.json train.sh >said
    imported=$(sed -nE 's/.*as study (.*)/\1/p' said)
    dt-tune history --compare="$study,$imported" >compared
    [ "$(grep -c ' 1 x ' compared)" = 2 ]
    "$python" - <<END
import json, subprocess
def shown(name):
    return json.loads(subprocess.check_output(["dt-tune", "history", "--show", name, "--format", "json"]))
a, b = shown("$study"), shown("$imported")
assert a["signature"] == b["signature"]
assert a["best"]["value"] == b["best"]["value"] and a["space"] == b["space"]
keys = ("config", "status", "value")
def rows(record):
    return [[o.get(k) for k in keys] for o in record["observations"]]
assert rows(a) == rows(b), (rows(a), rows(b))
END
    dt-tune history --show="$imported" --format=jsonl >o.jsonl
    run -0 dt-tune suggest --spec=spec.json --observations=o.jsonl
    run -2 dt-tune history --import=table.csv --spec=spec.json
    [[ $output == *"which program?"* ]]
    dt-tune report "$dir" --format csv >report.csv
    run -0 dt-tune history --import=report.csv --spec=spec.json train.sh
    sed -i '3s/,sgd,/,sdg,/;3s/,adam,/,sdg,/' table.csv
    run -2 dt-tune history --import=table.csv --spec=spec.json train.sh
    [[ $output == *"table.csv:3:"*sdg* ]]

    run -2 dt-tune history --prune
    [[ $output == *"of which studies?"* ]]
    run -0 dt-tune history --prune --older=1
    [[ $output == *"no such study"* ]]
    run -0 dt-tune history --prune --study="$study" --dry-run
    [ "$output" = "would forget $study" ]
    run -0 dt-tune history --prune --study="$study"
    [ "$output" = "forgotten: $study" ]
    run -0 dt-tune history
    [[ $output == *"$imported"* && $output != *" $study "* ]]
    run -0 dt-tune history --prune --older=0
    run -0 dt-tune history
    [[ $output == *"no study is in this history"* ]]
}

@test "doctor: all is well on this cluster; a cure for what is not" {
    export DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/history
    dt-tune doctor >said || { cat said; false; }
    [ "$(tail -1 said)" = "all is well" ]
    run ! grep -q '^BAD' said
    for word in slurmctld munged clock backfill spank_dt_tune.so 'sbatch knows --dt-tune' job_submit_dt_tune.so history; do
        grep -q "^ok.*$word" said
    done
    # no plugins, no backfill, forgetful, and a folder that cannot be written
    dirs=$(scontrol show config | sed -n 's/^PluginDir *= //p')
    other=$("$BATS_TEST_DIRNAME/dt-cluster" up --nodes 1 --conf SchedulerType=sched/builtin --conf MinJobAge=10 \
        --conf "PluginDir=$dirs" 3>&-)
    (
        eval "$("$BATS_TEST_DIRNAME/dt-cluster" env "$other")"
        PATH=$DT_BUILD:$PATH DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/said/history run -1 dt-tune doctor
        echo "$output" >"$BATS_TEST_TMPDIR/ill"
        PATH=$DT_BUILD:$PATH DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/said/history run -1 dt-tune doctor --no-plugins
        [[ $output != *plugstack* ]]
        # slurmctld does not name this file; a name in it is looked for along PluginDir
        echo "optional spank_dt_tune.so" >"$other/etc/plugstack.conf"
        PATH=$DT_BUILD:$PATH run -1 dt-tune doctor
        [[ $output == *"ok    $DT_BUILD/.libs/spank_dt_tune.so is there"* ]]
    )
    "$BATS_TEST_DIRNAME/dt-cluster" down "$other"
    other=
    cat ill
    for word in 'layout het cannot' 'forgets ended jobs' 'plugstack.conf, which would name spank_dt_tune.so, cannot' 'no job_submit plugin' 'said is not a folder'; do
        grep -A1 "^BAD.*$word" ill | grep -q '^      -> '
    done
    grep -q '5 things to mend' ill
    # no cluster at all
    echo "ClusterName=none" >slurm.conf
    echo "SlurmctldHost=localhost(127.0.0.1)" >>slurm.conf
    echo "SlurmctldPort=1" >>slurm.conf
    SLURM_CONF=$PWD/slurm.conf run -1 dt-tune doctor
    [[ $output == *"BAD   slurmctld does not answer"* ]]
    : >slurm.conf
    SLURM_CONF=$PWD/slurm.conf run -1 dt-tune doctor
    [[ $output == *"BAD   Slurm's configuration cannot be read: "* ]]
}
