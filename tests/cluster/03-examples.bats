#!/usr/bin/env bats
# The example jobs, without Slurm: their processes are started here as srun or dt-launch would.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    examples=$(cd "$BATS_TEST_DIRNAME/../../etc/examples" && pwd)
    python=
    for candidate in ${PYTHON-} python3 /usr/bin/python3; do
        if "$candidate" -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("torch") and u.find_spec("sklearn")))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    export examples python PYTHONDONTWRITEBYTECODE=1
}

setup() {
    work=$BATS_TEST_TMPDIR
    pids=()
    unset "${!DT_@}" "${!SLURM_@}" RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
    cd "$work"
}

teardown() {
    # Only a test that failed half-way leaves some.
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

need_torch() {
    [ -n "$python" ] || skip "no python3 with torch and scikit-learn (PYTHON)"
}

need_servers() {
    need_torch
    has_servers "$python" || skip "no PyTorch with RPC"
}

# free_port [FIRST]: not one of those that the system gives to others' connections while the job starts, and by itself (5000)
# none of a dt-cluster's.
free_port() {
    "$python" -c 'import random, socket, sys
while True:
    port = int(sys.argv[1]) + random.randrange(5000)
    try:
        socket.socket().bind(("127.0.0.1", port))
        print(port)
        break
    except OSError:
        pass' "${1-5000}"
}

# start NAME PS WORKERS PROGRAM [ARGUMENTS]: starts all roles of a job as dt-launch does; their
# output goes to NAME.out, their metrics to NAME.jsonl, their process ids into pids.
start() {
    local name=$1 ps=$2 workers=$3 rank role port
    shift 3
    port=$(free_port)
    pids=()
    for ((rank = 0; rank < ps + workers; rank++)); do
        role=$([ $rank -lt "$ps" ] && echo ps || echo worker)
        DT_ROLE=$role RANK=$rank WORLD_SIZE=$((ps + workers)) DT_METRICS_FILE=$name.jsonl \
            MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$python" "$examples/$1" "${@:2}" >>"$name.out" 2>&1 3>&- &
        pids+=($!)
    done
}

# finish: waits for all processes; sets statuses to their exit statuses, in the order of the ranks.
finish() {
    local pid status all=
    for pid in "${pids[@]}"; do
        status=0
        wait "$pid" || status=$?
        all="$all $status"
    done
    pids=()
    statuses=${all# }
}

# until_step NAME N: waits until a run has come to step N.
until_step() {
    local end=$((SECONDS + 300))
    until grep -q "step $2 " "$1.out" 2>/dev/null; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# expect_statuses WANTED NAME
expect_statuses() {
    if [ "$statuses" != "$1" ]; then
        echo "exit statuses $statuses, expected $1"
        cat "$2.out"
        return 1
    fi
}

# metrics NAME EXPRESSION: EXPRESSION in Python must hold for m, the list of metric lines.
metrics() {
    "$python" -c 'import json, sys
m = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(0 if eval(sys.argv[2]) else f"does not hold: {sys.argv[2]}\n{m}")' "$1.jsonl" "$2"
}

# losses FILE ROLE: prints every tenth step and the mean of the losses that a role's tasks logged.
losses() {
    awk -v role="[$2" '$1 == role && $3 == "step" && $4 % 10 == 0 { sum[$4] += $6; n[$4]++ }
        END { for (step in sum) print step, sum[step] / n[step] }' "$1" | sort -n
}

# same_losses FILE FILE: of 3 epochs, 67 steps.
same_losses() {
    paste "$1" "$2" | awk '{ print; d = $2 - $4; bad += $1 != $3 || d * d > 1e-4 }
        END { exit !(NR == 6 && !bad) }'
}

@test "asynchronous parameter servers learn; hyperparameters come from DT_PARAM_*" {
    need_servers
    export DT_PARAM_batch_size=32 DT_PARAM_lr=0.03
    start run 2 2 ps_train.py --mode async --epochs 4
    finish
    expect_statuses "0 0 0 0" run
    metrics run 'm[-1]["step"] == 4 * 1438 // 32'
    # what the servers see: how much of the work a worker does is nobody's to say
    losses run.out ps | awk '{ loss[NR] = $2 } END { exit !(loss[1] > 2 && loss[NR] < 0.5) }'
    metrics run 'm[-1]["accuracy"] > 0.85 and any(l.get("samples_per_s", 0) > 0 for l in m)'
    metrics run 'all(a["step"] <= b["step"] for a, b in zip(m, m[1:]))'
    grep -q '^\[ps 1\] step .* loss' run.out
}

@test "synchronous servers, all-reduce and one worker alone take the same steps" {
    need_servers
    start alone 0 1 ddp.py --epochs 3
    finish
    expect_statuses "0" alone
    start sync 2 2 ps_train.py --mode sync --epochs 3
    finish
    expect_statuses "0 0 0 0" sync
    grep -q '^\[worker 1\] step .* loss' sync.out
    start reduce 0 2 ps_train.py --epochs 3
    finish
    expect_statuses "0 0" reduce
    metrics alone 'm[0]["loss"] > 2 and m[-1]["loss"] < 0.6'
    same_losses <(losses alone.out 'worker') <(losses sync.out 'ps')
    same_losses <(losses alone.out 'worker') <(losses reduce.out 'worker')
}

@test "a signal to one task saves a checkpoint; another shape of job resumes it" {
    need_servers
    export DT_CHECKPOINT_DIR=$work/checkpoint
    start first 1 2 ps_train.py --mode async --epochs 1000
    until_step first 50
    kill -USR1 "${pids[2]}"
    finish
    expect_statuses "143 143 143" first
    step=$(sed -n 's/.*stopped at step \([0-9]*\), checkpoint written.*/\1/p' first.out)
    [ "$step" -ge 50 ]
    [ "$(ls "$DT_CHECKPOINT_DIR")" = checkpoint.pt ]

    start second 0 1 ddp.py --epochs 1000
    until_step second $((step / 10 * 10 + 20))
    kill -TERM "${pids[0]}"
    finish
    expect_statuses "143" second
    grep -q "resumed at step $step\$" second.out
    metrics second "m[0]['step'] > $step and m[0]['loss'] < 2"

    # some 45 steps more, however far those have come
    step=$(sed -n 's/.*stopped at step \([0-9]*\), .*/\1/p' second.out)
    epochs=$((step * 64 / 1438 + 3)) last=$((epochs * 1438 / 64))
    start third 2 1 ps_train.py --mode sync --epochs $epochs --checkpoint-every 30
    finish
    expect_statuses "0 0 0" third
    cat first.jsonl second.jsonl third.jsonl >all.jsonl
    metrics all 'all(a["step"] <= b["step"] for a, b in zip(m, m[1:])) and m[-1]["step"] == '$last
    metrics all 'm[-1]["accuracy"] > 0.9'
    # the last of those that were written on the way
    [ "$(ls "$DT_CHECKPOINT_DIR")" = checkpoint.pt ]
    [ "$("$python" -c 'import sys, torch; print(torch.load(sys.argv[1])["step"])' "$DT_CHECKPOINT_DIR/checkpoint.pt")" = $((last / 30 * 30)) ]
}

@test "a checkpoint that does not fit is refused" {
    need_torch
    export DT_CHECKPOINT_DIR=$work
    "$python" - <<'END'
import torch
content = {"version": 1, "samples": 640, "model_shape": [["0.weight", [16, 1, 3, 3]]],
           "optimizer": "sgd", "optimizer_state": {}, "model": torch.zeros(144)}
torch.save(content, "checkpoint.pt")
END
    start model 0 1 ddp.py
    finish
    expect_statuses "2" model
    grep -qF 'checkpoint.pt is of another model (there 0.weight [16, 1, 3, 3], here 0.weight [32, ' \
        model.out
    [ "$(wc -l <model.out)" = 1 ]

    echo nonsense >checkpoint.pt
    start broken 0 1 ps_train.py
    finish
    expect_statuses "2" broken
    grep -q 'cannot read checkpoint .*remove it' broken.out
}

@test "tasks do not wait for a lost peer" {
    need_servers
    SECONDS=0
    start server 1 2 ps_train.py --mode sync --epochs 1000 --timeout 600
    until_step server 20
    kill -KILL "${pids[0]}"
    finish
    expect_statuses "137 1 1" server
    grep -q 'worker, rank 2: lost contact while' server.out

    start worker 1 2 ps_train.py --mode async --epochs 1000 --timeout 10
    until_step worker 20
    kill -STOP "${pids[2]}"
    wait "${pids[0]}" || status=$?
    kill -KILL "${pids[2]}"
    finish
    [ "$status" = 1 ]
    grep -q 'ps, rank 0: no word from worker 1 for 10 s' worker.out

    start reduce 0 2 ddp.py --epochs 1000 --timeout 600
    until_step reduce 20
    kill -KILL "${pids[1]}"
    finish
    expect_statuses "1 137" reduce
    grep -q 'worker, rank 0: lost contact while' reduce.out
    [ $SECONDS -lt 500 ]
}

@test "plain srun, without roles: the first of several tasks is the server" {
    need_servers
    export SLURM_JOB_ID SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=h1 SLURM_STEP_NUM_NODES=1
    SLURM_JOB_ID=$(($(free_port 20000) - 20000)) # by it the tasks find each other
    for rank in 0 1; do
        SLURM_PROCID=$rank "$python" "$examples/ps_train.py" --epochs 1 >>run.out 2>&1 3>&- &
        pids+=($!)
    done
    finish
    expect_statuses "0 0" run
    grep -q '^\[ps 0\] step' run.out
    grep -q '^\[worker 0\] done: step 22' run.out
}

@test "the batch scripts start their program with srun and find it where they were submitted" {
    mkdir bin "$work/elsewhere"
    printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >bin/srun
    chmod +x bin/srun
    export PATH=$work/bin:$PATH PYTHON=/some/python SLURM_SUBMIT_DIR=$examples
    for name in ps_async:ps_train.py:--mode:async ps_sync:ps_train.py:--mode:sync ddp:ddp.py; do
        IFS=: read -r script program arguments <<<"$name"
        cp "$examples/$script.sh" copy.sh
        run -0 ./copy.sh --lr 0.1
        [ "$output" = "$(printf '%s\n' /some/python "$examples/$program" ${arguments/:/ } --lr 0.1 |
            tr ' ' '\n')" ]
        SLURM_SUBMIT_DIR=$work/elsewhere run -2 ./copy.sh
        [[ $output == *"elsewhere/$program is missing; submit from the folder of the examples"* ]]
    done
}

@test "the MPI example gives the same checksum for any number of ranks" {
    command -v mpicc >/dev/null || skip "no mpicc (Debian: mpich)"
    command -v mpiexec.hydra >/dev/null || skip "no mpiexec.hydra (Debian: mpich)"
    mpicc.mpich --version >/dev/null 2>&1 && mpicc=mpicc.mpich || mpicc=mpicc
    "$mpicc" -std=gnu17 -Wall -Wextra -Werror -O2 -o heat "$examples/heat_mpi.c"
    export DT_METRICS_FILE=$work/heat.jsonl
    for ranks in 1 2 3; do
        run -0 mpiexec.hydra -n $ranks ./heat 97 64 200
        [[ ${lines[0]} == "step 20: "*" ms a step" ]]
        [[ $output == *"$ranks ranks, 97 x 64 cells, 200 steps: "*"checksum "* ]]
        echo "${output##*checksum }" >>sums
    done
    [ "$(sort -u sums | wc -l)" = 1 ]
    [ "$(wc -l <heat.jsonl)" = 3 ]
    # reported to all digits, printed to 12
    "$python" -c '
import json, sys
for line in map(json.loads, open("heat.jsonl")):
    assert line["step"] == 200 and "%.12g" % line["checksum"] == sys.argv[1], line' "$(head -1 sums)"
    for arguments in "97 x 200" "1 64 200" "97 64"; do
        # shellcheck disable=SC2086
        run -2 mpiexec.hydra -n 2 ./heat $arguments
        [[ $output == "usage: heat_mpi [ROWS COLUMNS STEPS]"* ]]
    done
}
