#!/usr/bin/env bats
# dt-tune serve on a real Slurm: another program asks for trials, is told what comes of them, and may be killed, as may dt-tune.

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
    work=$(mktemp -d "$BATS_TEST_TMPDIR/serve.XXXXXX")
    cd "$work"
    pid=
    script
}

teardown() {
    # a test that failed half-way leaves some
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
    scancel -u "$(id -un)" 2>/dev/null || true
}

# script: makes train.sh, whose trials report accuracy = lr at steps 1 and 2, and in between wait for the file go-LR.
script() {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=1 --mem-per-cpu=10M --job-name=t
echo "$DT_TRIAL $DT_PARAM_lr" >>begun
dt-tune metric epoch=1 accuracy="0.$DT_PARAM_lr"
until [ -e "go-$DT_PARAM_lr" ]; do sleep 0.05; done
[ ! -e "fail-$DT_PARAM_lr" ] || exit 3
dt-tune metric epoch=2 accuracy="0.$DT_PARAM_lr"
echo "$DT_TRIAL $DT_PARAM_lr" >>over
END
}

options="--dt-workers=1-3 --dt-param=lr=1..9 --dt-objective=max:accuracy"

# serve [OPTION...]: starts it; `say` speaks to it, and its answers come into the file out.
serve() {
    rm -f requests
    mkfifo requests
    : >out
    # shellcheck disable=SC2086
    dt-tune serve $options "$@" train.sh <requests >out 2>err 3>&- &
    pid=$!
    exec 7>requests
    heard '"version":1'
    dir=$(field dir "$(head -1 out)")
}

say() {
    printf '%s\n' "$@" >&7
}

# ask ID LR
ask() {
    say "{\"id\": \"$1\", \"hyperparameters\": {\"lr\": $2}}"
}

heard() {
    wait_for 60 grep -qE -- "$1" out || {
        cat out err
        return 1
    }
}

# told ID EVENT: prints the answers of this kind for an id.
told() {
    grep -F "{\"id\":\"$1\",\"event\":\"$2\"" out || true
}

field() {
    sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" <<<"$2"
}

# go LR...: lets the trials with these go on to their end.
go() {
    local lr
    for lr; do touch "go-$lr"; done
}

# asked N: so many requests are in the journal.
asked() {
    [ "$(grep -c '"event":"asked"' "$dir/journal.jsonl")" = "$1" ]
}

# served [CODE]: no more requests; it ends so (0). Each line of its output is JSON, the last says that it has finished.
served() {
    local rc=0
    exec 7>&-
    wait "$pid" || rc=$?
    pid=
    [ $rc = "${1-0}" ] || {
        cat out err
        return 1
    }
    /usr/bin/python3 -c 'import json, sys
lines = [json.loads(line) for line in open("out")]
assert lines[0]["version"] == 1 and lines[-1]["event"] == "finished", lines'
}

# begun_once N: so many trials began, none of them twice.
begun_once() {
    [ "$(cut -d' ' -f1 begun | sort -n | tr '\n' ' ')" = "$(seq "$1" | tr '\n' ' ')" ] || {
        cat begun
        return 1
    }
}

@test "command lines that mean nothing are refused with the cure" {
    refused() {
        local text=$1
        shift
        run -2 --separate-stderr dt-tune serve "$@" </dev/null
        [ -z "$output" ]
        [[ $stderr == *"$text"* ]] || {
            echo "$stderr"
            return 1
        }
    }
    refused 'there is nothing to ask for: name the hyperparameters by --dt-param=NAME=DOMAIN or in SPEC' --dt-workers=1-2 train.sh
    # shellcheck disable=SC2086
    {
        echo '{"workers": 1}' >c.json
        refused 'serve: --dt-config has no meaning here, as it tunes nothing: use dt-sbatch' $options --dt-config=c.json train.sh
        refused 'serve: --dt-apply has no meaning here, as it tunes nothing' $options --dt-apply train.sh
        refused 'serve: --dt-dry-run has no meaning here, as the trials are not known beforehand: use dt-sbatch --dt-tune --dt-dry-run' \
            $options --dt-dry-run train.sh
        refused 'standard input: the script cannot be read from there a second time: put it into a file and give its name' $options
        refused 'no-such.sh' $options no-such.sh
        refused 'dt-resume: "no-such": No such file or directory' $options --dt-resume=no-such train.sh
        refused 'ask for less' $options --ntasks=1000 train.sh
    }
    echo '{"hyperparameters": {"lr": {"low": 1, "high": 9}}, "search": {"algorithm": "external"}}' >spec.json
    run -2 dt-sbatch --dt-tune=spec.json train.sh
    [[ $output == *'spec.json:1: search.algorithm: "external" needs a program that chooses the hyperparameters; start the study by dt-tune serve'* ]]
    run -1 sbatch --dt-tune=spec.json train.sh
    [[ $output == *'start the study by dt-tune serve'* ]]
    run -2 dt-tune check spec.json
    [[ $output == *'start the study by dt-tune serve'* ]]
    run -0 --separate-stderr dt-tune serve --dt-tune=spec.json train.sh </dev/null
    [[ ${lines[1]} == '{"event":"finished","reason":"no more was asked for","best":null}' ]]
    [ "$(ls -d dt-tune-* | wc -l)" = 1 ]
}

@test "two trials at once; wrong requests; metrics as they come; failures; what people may want to know" {
    serve --dt-parallel=2
    ask a 3
    ask b 4
    ask c 5
    heard '"id":"a","event":"metric","name":"accuracy","step":1,"value":0.3}'
    heard '"id":"b","event":"metric","name":"accuracy","step":1,"value":0.4}'
    say nonsense '{"id": "d", "hyperparameters": {"lr": 10}}' '{"id": "d", "hyperparameters": {"lr": 1, "workers": 2}}' \
        '{"id": "a", "hyperparameters": {"lr": 4}}' '{"id": "d"}' "{\"id\": \"$(head -c 2000000 /dev/zero | tr '\0' x)\"}"
    heard '"error":"request: a line may be 1 MiB long"'
    [ "$(grep -c '"event":"refused"' out)" = 6 ]
    [[ $(told a refused) == *'this id was used with other hyperparameters: lr=3'* ]]
    [[ $(told d refused) == *'"lr\": 10 is outside its domain'*'dt-tune chooses'*'there must be either'* ]]
    [ -z "$(told c started)" ]
    touch fail-4
    go 4
    heard '"id":"b","event":"ended"'
    heard '"id":"c","event":"started"'
    [ -z "$(told a ended)" ]
    go 3 5
    served
    [[ $(told a started) == *'"trial":1,"run":1,"config":{"workers":1,"lr":3}'* ]]
    [[ $(told a ended) == *'"trial":1,"status":"ok","cause":"ok","value":0.3,"duration_s":'*'"metrics":{"epoch":2,"accuracy":0.3},"config":{"workers":1,"lr":3}}' ]]
    [[ $(told b ended) == *'"status":"failed","cause":"exit code"'*'"value":null'* ]]
    [[ $(tail -1 out) == '{"event":"finished","reason":"no more was asked for","best":{"id":"c","trial":3,"value":0.5,'* ]]
    begun_once 3
    grep -q 'stopped: no more was asked for' err
    grep -q 'stopped: no more was asked for' "$dir/report.txt"
    dt-tune report "$dir" >again
    diff <(sed /^submit/d again) <(sed /^submit/d "$dir/report.txt")
    [ -x "$dir/best.sh" ]
}

@test "ending a trial early; one that has not begun; a request after the end" {
    serve
    ask a 3
    ask b 4
    ask c 5
    heard '"id":"a","event":"metric","name":"accuracy"'
    say '{"id": "b", "prune": true}' '{"id": "a", "prune": true}' '{"id": "x", "prune": true}'
    heard '"id":"a","event":"ended"'
    [[ $(told a ended) == *'"status":"pruned","cause":"stopped early"'*'"value":0.3'* ]]
    [[ $(told b ended) == *'"trial":null,"status":"pruned"'* ]]
    [[ $(told x refused) == *'nobody asked for this id'* ]]
    heard '"id":"c","event":"metric","name":"accuracy"'
    say '{"end": true}'
    ask d 6
    heard '"id":"d","event":"refused","error":"the end of requests was told already"'
    go 5
    heard '"event":"finished"'
    served
    [ "$(wc -l <begun)" = 2 ]
    [ "$(cat over)" = "2 5" ]
}

@test "kill -9 half way, and the same requests again: nothing is lost and nothing is run twice" {
    serve --dt-parallel=2
    ask a 3
    go 3
    heard '"id":"a","event":"ended"'
    ask b 4
    ask c 5
    ask d 6
    heard '"id":"b","event":"metric","name":"accuracy"'
    heard '"id":"c","event":"metric","name":"accuracy"'
    wait_for 60 asked 4
    kill -KILL "$pid"
    wait "$pid" || true
    exec 7>&-
    go 4 # this one ends while nobody looks
    wait_for 60 grep -q "^[0-9]* 4" over
    run -1 --separate-stderr sbatch --dt-tune --dt-resume="$dir" --wait --output=refused.txt train.sh
    grep -qF "another program chooses the hyperparameters of this study: go on with it by dt-tune serve --dt-resume=$dir" refused.txt

    serve --dt-parallel=2 --dt-resume="$dir"
    ask a 3
    ask b 4
    ask c 5
    ask d 6
    ask e 7
    ask b 8
    heard '"id":"a","event":"ended","trial":1,"status":"ok"'
    heard '"id":"b","event":"ended","trial":[23],"status":"ok"'
    heard '"id":"c","event":"started"'
    heard '"id":"c","event":"metric","name":"accuracy","step":1,"value":0.5'
    heard '"id":"b","event":"refused","error":"this id was used with other hyperparameters: lr=4"'
    go 5 6 7
    served
    for id in a b c d e; do
        [ "$(told $id ended | wc -l)" = 1 ]
    done
    begun_once 5
    [ "$(cut -d' ' -f2 over | sort | tr '\n' ' ')" = "3 4 5 6 7 " ]
    asked 5
    [ "$(grep -c '"event":"created"' "$dir/journal.jsonl")" = 5 ]
}

@test "a signal ends it and its trials; resumed it runs them again for the same requests" {
    serve --dt-parallel=2 --dt-max-configs=2
    ask a 3
    ask b 4
    ask c 5
    heard '"id":"a","event":"metric","name":"accuracy"'
    heard '"id":"b","event":"metric","name":"accuracy"'
    wait_for 60 asked 3
    kill -TERM "$pid"
    heard '"event":"finished","reason":"interrupted: the tuner was told to end \(signal 15\)"'
    served 1
    [[ $(told a ended) == *'"status":"void","cause":"interrupted"'* ]]
    [[ $(told c refused) == *'the study ended before this trial'*'ask again when it goes on'* ]]
    grep -qF "go on with: dt-tune serve --dt-resume=$dir $dir/script" err
    go 3 4 5
    rm begun
    serve --dt-parallel=2 --dt-max-configs=2 --dt-resume="$dir"
    ask a 3
    ask b 4
    heard '"id":"a","event":"ended","trial":1,"status":"ok"'
    heard '"event":"finished","reason":"maximum of configurations: 2 of 2 were tried"'
    served
    [ "$(sort -u begun | wc -l)" = 2 ]
    [ "$(told b ended | wc -l)" = 1 ]
    run -0 --separate-stderr sbatch --dt-tune --dt-workers=1 --dt-max-configs=1 --wait --output=plain.txt --wrap "true"
    plain=$(ls -d dt-tune-[0-9]*)
    # shellcheck disable=SC2086
    run -1 dt-tune serve $options --dt-resume="$plain" train.sh </dev/null
    [[ $output == *"this study chooses the hyperparameters itself: go on with it by --dt-tune --dt-resume=$work/$plain"* ]]
}

@test "a caller that is gone: what runs is finished and kept, and the next sitting waits for it" {
    mkfifo requests
    # shellcheck disable=SC2086
    dt-tune serve $options train.sh <requests 2>err 3>&- | head -1 >out &
    exec 7>requests
    heard '"version":1'
    dir=$(field dir "$(head -1 out)")
    ask a 3
    wait_for 60 test -e begun # its answer cannot be written any more, but the study goes on to its end
    exec 7>&-
    rm requests
    mkfifo requests
    : >out
    # shellcheck disable=SC2086
    dt-tune serve $options --dt-resume="$dir" train.sh <requests >out 2>err2 3>&- &
    pid=$!
    exec 7>requests
    ask a 3
    wait_for 60 grep -q 'another dt-tune serve still finishes trials of this study; waiting' err2
    go 3
    heard '"id":"a","event":"ended","trial":1,"status":"ok"'
    served
    begun_once 1
}

@test "a reader that is silent keeps nothing from going on" {
    mkfifo requests answers
    # shellcheck disable=SC2086
    dt-tune serve $options train.sh <requests >answers 2>err 3>&- &
    pid=$!
    exec 7>requests 8<answers
    read -r line <&8
    dir=$(field dir "$line")
    for i in $(seq 3000); do # much more of answers than a pipe holds
        echo '{"id": "x", "hyperparameters": {}}'
    done >&7
    ask a 3
    go 3
    wait_for 60 grep -q '"event":"ended"' "$dir/journal.jsonl"
    exec 7>&-
    cat <&8 >>out &
    heard '"event":"finished"'
    wait "$pid"
    pid=
    [ "$(grep -c '"id":"x","event":"refused"' out)" = 3000 ]
}

# optuna N: becomes the example, with N trials of train.sh.
optuna() {
    PYTHONWARNINGS=ignore exec /usr/bin/python3 "$BATS_TEST_DIRNAME/../../etc/examples/optuna_serve.py" "$1" train.sh
}

@test "an Optuna study that is killed half way goes on, and no trial is lost or repeated" {
    /usr/bin/python3 -c 'import optuna' 2>/dev/null || skip "python3-optuna is not installed"
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=1 --mem-per-cpu=10M --job-name=t
echo "$DT_TRIAL" >>begun
for i in 1 2 3; do
    dt-tune metric "epoch=$i" "accuracy=$(awk -v "lr=$DT_PARAM_lr" -v "i=$i" 'BEGIN { print (1 - 5 * lr) * i / 3 }')"
    until [ "$DT_TRIAL" -lt 4 ] || [ -e released ]; do sleep 0.05; done
done
END
    optuna 8 >first.txt 2>&1 3>&- &
    driver=$!
    lines_in() {
        [ "$(wc -l <"$1" 2>/dev/null)" -ge "$2" ]
    }
    wait_for 120 lines_in begun 5 # three have ended, two are held
    kill -KILL $driver
    wait $driver || true
    optuna 8 >second.txt 2>&1 3>&- &
    driver=$!
    wait_for 60 grep -q 'another dt-tune serve still finishes trials of this study; waiting' second.txt
    touch released
    wait $driver || {
        cat second.txt
        false
    }
    grep -q '^finished: ' second.txt
    begun_once 8
    [ "$(ls -d dt-tune-* | wc -l)" = 1 ]
    [ "$(grep -c '"event":"asked"' dt-tune-*/journal.jsonl)" = 8 ]
    /usr/bin/python3 - <<'END' 2>/dev/null
import optuna
storage = optuna.storages.JournalStorage(optuna.storages.JournalFileStorage("optuna.journal"))
trials = optuna.load_study(study_name="serve", storage=storage).trials
states = [t.state.name for t in trials]
assert len(states) == 8 and set(states) <= {"COMPLETE", "PRUNED"}, states
assert all(abs(t.value - (1 - 5 * t.params["lr"])) < 1e-4 for t in trials if t.state.name == "COMPLETE")
END
}

@test "the Optuna example: killed while it wrote, and with nobody left to hear that it has no more to ask" {
    /usr/bin/python3 -c 'import optuna' 2>/dev/null || skip "python3-optuna is not installed"
    cat >dt-tune <<'END'
#!/bin/sh
echo '{"study":"s","version":1,"dir":"d"}'
read -r request
exec <&-
echo '{"id":0,"event":"ended","status":"ok","value":0.5}'
echo '{"event":"finished","reason":"maximum","best":null}'
END
    chmod +x dt-tune
    PATH=$PWD:$PATH
    ln -s optuna.journal optuna.journal.lock # what the lock that is Optuna's own would leave
    run -0 timeout 120 /usr/bin/python3 "$BATS_TEST_DIRNAME/../../etc/examples/optuna_serve.py" 1 train.sh
    [[ $output == *"finished: maximum"* ]]
}

@test "the example in shell" {
    cat >train.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=1 --mem-per-cpu=10M
dt-tune metric "accuracy=$DT_PARAM_lr"
END
    run -0 --separate-stderr "$BATS_TEST_DIRNAME/../../etc/examples/serve.sh" train.sh
    for lr in 0.01 0.02 0.04; do
        [[ $output =~ lr=$lr:\ ok,\ accuracy\ $lr,\ [0-9.e-]+\ s\ with\ [1-4]\ workers ]]
    done
    [[ $output == *'best: {"id":"lr=0.04",'* ]]
}
