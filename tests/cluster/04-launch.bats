#!/usr/bin/env bats
# dt-launch in trials written by hand: who is started where, with what environment, and how all ends.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    # Slurm's own time between SIGTERM and SIGKILL: no slow machine needs more for what is to be written at the end
    cluster_up --nodes 4 --cpus 8 --gpus 4 --conf KillWait=30
}

teardown_file() {
    cluster_down
}

setup() {
    [ -x "$DT_BUILD/dt-launch" ] || skip "dt-launch is not built"
    work=$(mktemp -d "$BATS_TEST_TMPDIR/launch.XXXXXX")
    cd "$work"
    dir=$work/trial
}

# plan LAYOUT PS WORKERS [MORE]: prints a trial's JSON: servers with 1 CPU, workers with 2 CPUs and a GPU.
plan() {
    local ps=
    [ "$2" = 0 ] || ps='{"name":"ps","count":'$2',"cpus":1,"gpus":0},'
    printf '{"version":1,"study":"1","trial":7,"run":2,"dir":"%s","layout":"%s","roles":[%s%s],' "$dir" "$1" \
        "$ps" '{"name":"worker","count":'"$3"',"cpus":2,"gpus":1}'
    printf '"submitted_tasks":4,"params":{"lr":0.01,"optimizer":"sgd","nesterov":true,"batch":32}%s}' "${4-}"
}

# carrier HEADER JSON: writes trial.sh around the user's script on stdin.
carrier() {
    {
        printf '#!/bin/sh\n%s\n' "$1"
        printf 'exec '\''%s/dt-launch'\'' --carrier "$0" "$@"\n' "$DT_BUILD"
        printf '#DT-TUNE-JSON %s\n#DT-TUNE-SCRIPT\n' "$2"
        cat
    } >trial.sh
}

# trial LAYOUT PS WORKERS [MORE]: the script on stdin as trial.sh, on two nodes for the workers.
trial() {
    local header="#SBATCH --output=$work/out --no-requeue"
    case $1 in
    het) header+=$'\n'"#SBATCH -N1 --ntasks=$2 --cpus-per-task=1"$'\n#SBATCH hetjob\n'
        header+="#SBATCH -N2 --ntasks=$3 --cpus-per-task=2 --gpus-per-task=1" ;;
    packed) header+=$'\n'"#SBATCH -N2 --ntasks-per-node=8 --gpus-per-node=4" ;;
    esac
    carrier "$header" "$(plan "$@")"
}

# run_trial [ARG...]: submits trial.sh and waits; $job and $code (the script's exit code) are set.
run_trial() {
    job=$(sbatch --parsable trial.sh "$@")
    wait_for 150 job_ended "$job"
    code=$(scontrol -o show job "$job" | sed -nE '1s/.* ExitCode=([0-9]+):.*/\1/p')
    echo "job $job ended with $code:"
    cat out
}

# json FILE EXPRESSION: prints a Python expression over the file's value `o`.
json() {
    /usr/bin/python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# What a program defines to say that it is there, `up`, and to wait for the servers, `served N`: they are ended with the
# workers, however far they have come.
up='up() { touch $DT_TRIAL_DIR/up-$DT_ROLE-$DT_ROLE_RANK; }; served() { until [ $(ls $DT_TRIAL_DIR | grep -c ^up-ps) = $1 ]; do sleep 0.1; done; }'

# A program that leaves its environment behind; servers then wait to be ended.
dump_program() {
    cat >dump.py <<'END'
#!/usr/bin/python3
import json, os, signal, sys, time
e = os.environ
name = "env-%s-%s.json"
signal.signal(signal.SIGTERM, lambda *a: sys.exit(3))
with open("part-%s-%s" % (e["DT_ROLE"], e["DT_ROLE_RANK"]), "w") as f:
    json.dump(dict(e), f)
os.rename(f.name, name % (e["DT_ROLE"], e["DT_ROLE_RANK"]))
if e["DT_ROLE"] == "ps":
    time.sleep(300)
for i in range(len(e["DT_PS_HOSTS"].split(",")) if e["DT_PS_HOSTS"] else 0): # servers end with the workers
    while not os.path.exists(name % ("ps", i)):
        time.sleep(0.1)
END
    chmod +x dump.py
}

# check_env PS WORKERS: every variable of every task.
check_env() {
    /usr/bin/python3 - "$1" "$2" "$dir" <<'END'
import json, sys
n_ps, n_worker, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tasks = [("ps", i) for i in range(n_ps)] + [("worker", i) for i in range(n_worker)]
envs = [json.load(open("env-%s-%d.json" % t)) for t in tasks]
first = envs[0]
ps = first["DT_PS_HOSTS"].split(",") if n_ps else []
worker = first["DT_WORKER_HOSTS"].split(",")
assert len(ps) == n_ps and len(worker) == n_worker
everyone = ps + worker
ports = [int(h.rsplit(":", 1)[1]) for h in everyone]
low, high = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
assert len(set(ports)) == len(ports), ports
assert all(p > 1024 and not low <= p <= high for p in ports), ports
local = {}
for rank, ((role, index), e) in enumerate(zip(tasks, envs)):
    assert e["DT_ROLE"] == role and e["DT_RANK"] == str(rank) and e["DT_ROLE_RANK"] == str(index)
    assert e["DT_PS_HOSTS"] == ",".join(ps) and e["DT_WORKER_HOSTS"] == ",".join(worker)
    assert e["DT_PARAM_lr"] == "0.01" and e["DT_PARAM_optimizer"] == "sgd"
    assert e["DT_PARAM_nesterov"] == "true" and e["DT_PARAM_batch"] == "32"
    assert json.loads(e["DT_PARAMS"]) == {"lr": 0.01, "optimizer": "sgd", "nesterov": True, "batch": 32}
    assert e["DT_TRIAL"] == "7" and e["DT_RESTARTS"] == "1" and e["DT_TRIAL_DIR"] == folder
    assert e["DT_CHECKPOINT_DIR"] == folder + "/checkpoint"
    assert e["DT_METRICS_FILE"] == folder + "/metrics.jsonl"
    cluster = {"ps": ps, "worker": worker} if n_ps else {"worker": worker}
    assert json.loads(e["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": role, "index": index}}
    address, port = everyone[0].rsplit(":", 1)
    assert e["MASTER_ADDR"] == address and e["MASTER_PORT"] == port
    assert e["RANK"] == str(rank) and e["WORLD_SIZE"] == str(len(tasks))
    assert e["LOCAL_RANK"] == e["SLURM_LOCALID"] and e["SLURM_PROCID"] == str(index)
    assert e["DMLC_ROLE"] == ("server" if role == "ps" else "worker")
    assert e["DMLC_PS_ROOT_URI"] == address and e["DMLC_PS_ROOT_PORT"] == port
    assert e["DMLC_NUM_SERVER"] == str(n_ps) and e["DMLC_NUM_WORKER"] == str(n_worker)
    assert e["SLURM_CPUS_PER_TASK"] == ("1" if role == "ps" else "2")
    if role == "ps":
        assert "CUDA_VISIBLE_DEVICES" not in e
    local.setdefault((role, e["SLURMD_NODENAME"]), []).append(e.get("CUDA_VISIBLE_DEVICES"))
print(local)
END
}

@test "het: every variable of every task, more tasks than nodes" {
    dump_program
    trial het 2 4 ',"gpu_bind":"task"' <<<$'#!/bin/bash\ndt-launch ./dump.py'
    run_trial
    [ "$code" = 0 ]
    check_env 2 4
    [ "$(json "$dir/end.json" 'o["exit_code"], o["signal"], "failed" in o')" = "(0, 0, False)" ]
    [ "$(json "$dir/end.json" 'o["start"] <= o["launch"] <= o["end"]')" = True ]
    [ "$(json "$dir/start.json" 'o["version"], o["job"], o["node"]')" = "(1, '$job', '$(json env-ps-0.json 'o["SLURMD_NODENAME"]')')" ]
}

@test "packed: every variable; servers and workers spread evenly, each worker its own GPU" {
    dump_program
    trial packed 2 6 ',"gpu_bind":"task"' <<<$'#!/bin/bash\nsrun ./dump.py'
    run_trial
    [ "$code" = 0 ]
    run check_env 2 6
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -o "('ps', 'h.'): \[None\]" <<<"$output" | wc -l)" = 2 ]
    if [ -c "$DT_CLUSTER_DIR/dev/gpu0" ]; then
        [ "$(grep -o "('worker', 'h.'): \['0', '1', '2'\]" <<<"$output" | wc -l)" = 2 ]
    fi
}

@test "workers alone: one step, and every GPU of the node where they are not bound" {
    dump_program
    trial packed 0 4 <<<$'#!/bin/bash\nsrun ./dump.py'
    run_trial
    [ "$code" = 0 ]
    run check_env 0 4
    echo "$output"
    [ "$status" -eq 0 ]
    if [ -c "$DT_CLUSTER_DIR/dev/gpu0" ]; then
        [ "$(grep -o "0,1,2,3" <<<"$output" | wc -l)" = 4 ]
    fi
}

@test "the batch script has the trial's variables and links; the wrapper has no threads that take its signals" {
    trial packed 1 2 <<'END'
#!/bin/bash
env >env.txt
grep ^Threads: /proc/$PPID/status | tr -d '[:blank:]' >threads.txt
readlink -f "$(command -v srun)" "$(command -v dt-launch)" >links.txt
END
    run_trial
    [ "$code" = 0 ]
    [ "$(cat threads.txt)" = Threads:1 ]
    grep -qx DT_TRIAL=7 env.txt
    grep -qx DT_PARAM_lr=0.01 env.txt
    grep -qx "DT_METRICS_FILE=$dir/metrics.jsonl" env.txt
    grep -qx SLURM_NTASKS=3 env.txt
    [ -d "$dir/checkpoint" ]
    [ "$(sort -u links.txt)" = "$(readlink -f "$DT_BUILD/dt-launch")" ]
    [ "$(json "$dir/end.json" 'o["launch"]')" = None ]
}

@test "servers are ended with SIGTERM when the workers are done, their status does not count" {
    trial het 2 2 < <(echo '#!/bin/bash' && echo "srun bash -c '$up" && cat <<'END'
if [ $DT_ROLE = ps ]; then trap "echo server $DT_ROLE_RANK ends; exit 9" TERM; up; while :; do sleep 0.1; done; fi; served 2'
echo "code $?"
END
    )
    run_trial
    grep -qx 'code 0' out
    grep -qx 'server 0 ends' out
    grep -qx 'server 1 ends' out
    grep -qx 'server 0 ends' "$dir/ps-0.log"
    [ "$(ls "$dir/tasks")" = "" ]
}

@test "a script whose tasks are told to end before it is, and that ends with them, was told" {
    # with another srun, and with ours and a program that takes it as a reason to end well
    for script in 'echo up; echo up; until [ -e gone ]; do sleep 0.1; done; exit 143' 'srun bash -c "trap \"exit 0\" TERM; echo up; while :; do sleep 0.1; done"'; do
        rm -rf "$dir" out gone
        trial packed 0 2 < <(cat - <(echo "$script") <<'END'
#!/bin/bash
(until [ $(grep -cx up out) = 2 ]; do sleep 0.1; done
 scancel --signal=TERM $SLURM_JOB_ID; touch gone
 while kill -0 $$; do sleep 0.05; done; kill -TERM $PPID) >/dev/null 2>&1 &
END
        )
        run_trial
        cat "$dir/end.json"
        [ "$(json "$dir/end.json" 'o["told"], "failed" in o')" = "(True, False)" ]
    done
}

@test "a wrapper that is stopped before it has started its script knows for how long" {
    trial packed 0 1 <<'END'
#!/bin/bash
true
END
    mkfifo carrier
    "$DT_BUILD/dt-launch" --carrier carrier >out 2>&1 3>&- &
    exec 9>carrier # it is at work
    kill -STOP $!
    cat trial.sh >&9
    exec 9>&-
    sleep 2.5
    kill -CONT $!
    wait $!
    # to half a second
    [ "$(json "$dir/end.json" '2 <= o["suspended_s"] <= o["end"] - o["start"]')" = True ]
}

@test "tasks that get SIGTERM by their program, or since one of them failed, were not told to end" {
    trial packed 0 1 <<'END'
#!/bin/bash
srun bash -c 'trap "" TERM; kill 0'
END
    run_trial
    [ "$(json "$dir/end.json" 'o["exit_code"], "told" in o, "tasks_told" in o')" = "(0, False, False)" ]
    rm -rf "$dir" out
    trial packed 0 2 <<'END'
#!/bin/bash
srun bash -c 'if [ $SLURM_PROCID = 1 ]; then until [ -e $DT_TRIAL_DIR/up ]; do sleep 0.1; done; exit 3; fi
trap "touch $DT_TRIAL_DIR/got; exit 0" TERM
touch $DT_TRIAL_DIR/up
while :; do sleep 0.1; done'
END
    run_trial
    [ -e "$dir/got" ]
    [ "$(json "$dir/end.json" 'o["exit_code"], "told" in o, "tasks_told" in o')" = "(3, False, False)" ]
}

@test "a server that ignores SIGTERM is killed after its grace" {
    trial packed 1 2 < <(echo '#!/bin/bash' && echo "SECONDS=0; srun bash -c '$up" && cat <<'END'
if [ $DT_ROLE = ps ]; then trap "" TERM; up; while :; do sleep 0.1; done; fi; served 1'
echo "code $?"
[ $SECONDS -ge 5 ] && echo in time
END
    )
    run_trial
    grep -qx 'code 0' out
    grep -qx 'in time' out
}

@test "a server that ends early with 0 is fine" {
    trial packed 1 2 <<<$'#!/bin/bash\nsrun bash -c \'[ $DT_ROLE = ps ] || { sleep 1; echo worker $DT_ROLE_RANK; }\''
    run_trial
    [ "$code" = 0 ]
    [ "$(grep -c worker out)" = 2 ]
}

@test "a worker dies: all ends within seconds with its code, end.json names it with its last lines" {
    for layout in het packed; do
        rm -rf "$dir"
        trial $layout 1 4 <<'END'
#!/bin/bash
srun bash -c 'if [ $DT_ROLE$DT_ROLE_RANK = worker2 ]; then for i in {1..30}; do echo line $i; done; printf "bad \\xff byte" >&2; exit 42; fi; sleep 300'
END
        run_trial
        [ "$code" = 42 ]
        [ "$(json "$dir/end.json" 'o["end"] - o["start"] < 25')" = True ]
        [ "$(json "$dir/end.json" 'o["exit_code"], o["failed"]["role"], o["failed"]["rank"], o["failed"]["exit_code"], o["failed"]["signal"]')" = \
            "(42, 'worker', 2, 42, 0)" ]
        [ "$(json "$dir/end.json" 'len(o["failed"]["lines"]), o["failed"]["lines"][0], o["failed"]["lines"][-1]')" = \
            "(20, 'line 12', 'bad ? byte')" ]
        [[ $(json "$dir/end.json" 'o["failed"]["node"]') == h[1-4] ]]
    done
}

@test "a worker dies and the others ignore SIGTERM: over before Slurm's KillWait is" {
    trial packed 1 3 <<'END'
#!/bin/bash
srun bash -c 'trap "" TERM; if [ $DT_ROLE$DT_ROLE_RANK = worker1 ]; then kill -SEGV $$; fi; while :; do sleep 0.1; done'
END
    run_trial
    [ "$code" = 139 ]
    [ "$(json "$dir/end.json" 'o["failed"]["role"], o["failed"]["rank"], o["failed"]["signal"]')" = "('worker', 1, 11)" ]
    [ "$(json "$dir/end.json" 'o["end"] - o["start"] < 25')" = True ]
}

@test "of two workers that die the first counts, also where the other is sooner told of" {
    trial packed 0 2 <<'END'
#!/bin/bash
srun bash -c 'if [ $DT_ROLE_RANK = 0 ]; then echo $$ >pid; until [ -e seen ]; do sleep 0.1; done; echo the cause; exit 42; fi
until [ -s pid ]; do sleep 0.1; done
first=$(cat pid); touch seen
while kill -0 $first 2>/dev/null; do sleep 0.05; done; kill -SEGV $$'
END
    run_trial
    [ "$code" = 42 ]
    [ "$(json "$dir/end.json" 'o["failed"]["rank"], o["failed"]["exit_code"], o["failed"]["lines"]')" = "(0, 42, ['the cause'])" ]
}

@test "a server dies: the workers are ended, its code is the launch's" {
    trial het 2 2 <<'END'
#!/bin/bash
srun bash -c 'if [ $DT_ROLE$DT_ROLE_RANK = ps1 ]; then sleep 0.5; echo no space left; exit 28; fi; sleep 300'
END
    run_trial
    [ "$code" = 28 ]
    [ "$(json "$dir/end.json" 'o["failed"]["role"], o["failed"]["rank"], o["failed"]["lines"]')" = "('ps', 1, ['no space left'])" ]
    [ "$(json "$dir/end.json" 'o["end"] - o["start"] < 25')" = True ]
}

@test "a failure that the script dealt with is not the trial's" {
    trial packed 1 2 <<'END'
#!/bin/bash
srun bash -c '[ $DT_ROLE = ps ] && exec sleep 300; exit 5' || echo "first $?"
srun bash -c '[ $DT_ROLE = ps ] && exec sleep 300; echo second $DT_ROLE_RANK'
END
    run_trial
    [ "$code" = 0 ]
    grep -qx 'first 5' out
    [ "$(grep -c second out)" = 2 ]
    [ "$(json "$dir/end.json" '"failed" in o')" = False ]
    [ -e "$dir/launch-2.json" ]
}

@test "two launches at once in one script" {
    trial packed 0 2 <<'END'
#!/bin/bash
srun bash -c 'sleep 2; echo a $MASTER_PORT' >a.txt &
srun bash -c 'echo b $MASTER_PORT' >b.txt
wait
END
    run_trial
    [ "$code" = 0 ]
    [ "$(cut -d' ' -f2 a.txt b.txt | sort -u | wc -l)" = 2 ]
    [ -s "$dir/launch-2.json" ]
}

@test "one launch after the other, an option left out is named" {
    trial packed 0 2 <<'END'
#!/bin/bash
srun --overlap echo a
srun bash -c 'echo b $MASTER_PORT' >b.txt
END
    run_trial
    [ "$code" = 0 ]
    [ "$(grep -cx a out)" = 2 ]
    [ "$(sort -u b.txt | wc -l)" = 1 ]
    [ "$(wc -l <b.txt)" = 2 ]
    grep -q -- 'left out.*--overlap' out
}

@test "a script without dt-launch: Python, exit code kept" {
    trial packed 1 2 <<<$'#!/usr/bin/python3\nimport sys\nprint("python", sys.argv[1:])\nsys.exit(3)'
    run_trial 'a b' "c'd"
    [ "$code" = 3 ]
    grep -qF "python ['a b', \"c'd\"]" out
    [ "$(json "$dir/end.json" 'o["exit_code"], o["launch"], "failed" in o')" = "(3, None, False)" ]
}

@test "a script without an interpreter line is run by sh" {
    trial packed 1 2 <<<$'echo plain sh: "$1"'
    run_trial 'x y'
    [ "$code" = 0 ]
    grep -qx 'plain sh: x y' out
}

@test "arguments reach PROGRAM to the letter" {
    cat >args.py <<'END'
#!/usr/bin/python3
import json, os, sys, time
role = os.environ["DT_ROLE"]
if os.environ["DT_ROLE_RANK"] == "0":
    with open("part-%s" % role, "w") as f:
        json.dump(sys.argv[1:], f)
    os.rename(f.name, "args-%s.json" % role)
while role == "worker" and not os.path.exists("args-ps.json"): # the servers end with the workers
    time.sleep(0.1)
END
    chmod +x args.py
    cat >script <<'END'
#!/bin/bash
srun -l ./args.py 'a b' "it's" '"q"' '' $'new\nline' '$HOME' '*' '\back' -n 3 --nodes=7 -- 'ä' "$@"
END
    trial packed 1 2 <script
    run_trial 'last one'
    [ "$code" = 0 ]
    for role in ps worker; do
        [ "$(json args-$role.json 'o == ["a b", "it'\''s", "\"q\"", "", "new\nline", "$HOME", "*", "\\back", "-n", "3", "--nodes=7", "--", "ä", "last one"]')" = True ]
    done
}

@test "srun: which counts mean all roles, what is left out, what goes to Slurm's own srun" {
    trial packed 1 4 < <(echo '#!/bin/bash' && echo "p='$up" && cat <<'END'
printf "%s %s\n" "$t" ${DT_ROLE-none}; case ${DT_ROLE-} in ps) up ;; worker) served 1 ;; esac'
for n in "-n $SLURM_NTASKS" -n4 --ntasks=5 '-N 4' '--nodes=2 --ntasks-per-node=2' '-N2' '-c 7 --gres=gpu:1 --mem=1G --exact'; do
    t="$n" srun $n bash -c "$p"
    rm -f $DT_TRIAL_DIR/up-*
done
for n in -n1 '-n 3' "-w $SLURMD_NODENAME -n 1"; do
    t="$n" srun $n bash -c "$p"
done
t=last srun bash -c "$p; [ \$DT_ROLE = ps ] && exec sleep 300; [ \$DT_ROLE_RANK = 0 ] && srun --overlap -n1 bash -c 'echo nested \$DT_ROLE'; exit 0"
END
    )
    run_trial
    [ "$code" = 0 ]
    for n in '-n 5' -n4 --ntasks=5 '-N 4' '--nodes=2 --ntasks-per-node=2' '-N2' '-c 7 --gres=gpu:1 --mem=1G --exact'; do
        [ "$(grep -cxF -- "$n worker" out)" = 4 ]
        [ "$(grep -cxF -- "$n ps" out)" = 1 ]
    done
    [ "$(grep -cxF -- '-n1 none' out)" = 1 ]
    [ "$(grep -cxF -- '-n 3 none' out)" = 3 ]
    [ "$(grep -c -- '-w .* none' out)" = 1 ]
    [ "$(grep -cx 'nested worker' out)" = 1 ]
    run ! grep -q Terminat out
    [ "$(grep -c 'left out.*--cpus-per-task --gres --mem --exact$' out)" = 1 ]
}

@test "output: redirection, labels, --output of two roles, standard input" {
    echo hello >in.txt
    trial packed 1 2 < <(echo '#!/bin/bash' && echo "wait='$up" && cat <<'END'
[ $DT_ROLE = worker ] || up; served 1'
srun bash -c "echo to file \$DT_ROLE; echo to log >&2; $wait" >file.txt 2>err.txt
rm -f $DT_TRIAL_DIR/up-*
srun -l bash -c '[ $DT_ROLE = ps ] || echo labelled'
srun --output=both.txt bash -c "echo \$DT_ROLE; $wait"
srun bash -c '[ $DT_ROLE = ps ] || cat' <in.txt
END
    )
    run_trial
    [ "$code" = 0 ]
    [ "$(sort file.txt | tr '\n' ,)" = 'to file ps,to file worker,to file worker,' ]
    [ "$(grep -cx 'to log' err.txt)" = 3 ]
    [ "$(grep -cE '^[01]: labelled$' out)" = 2 ]
    [ "$(sort both.txt | tr '\n' ,)" = ps,worker,worker, ]
    [ "$(grep -cx hello out)" = 2 ]
    [ "$(sort "$dir/worker-1.log" | uniq -c | tr -s ' \n' ' ,')" = ' 1 hello, 1 labelled, 1 to file worker, 1 to log, 1 worker,' ] ||
        { cat "$dir/worker-1.log"; false; }
}

@test "a task's log ends at its limit and says so, the output goes on" {
    trial packed 0 1 <<<$'#!/bin/bash\nsrun bash -c \'head -c 10000000 /dev/zero | tr "\\\\0" x; echo; echo the end\' >big.txt'
    run_trial
    [ "$code" = 0 ]
    [ "$(stat -c %s big.txt)" = 10000009 ]
    size=$(stat -c %s "$dir/worker-0.log")
    [ "$size" -gt 8300000 ] && [ "$size" -lt 8389000 ]
    tail -n 1 "$dir/worker-0.log" | grep -q 'limit of 8 MiB'
}

@test "MPI works over a packed layout" {
    command -v mpicc.mpich >/dev/null || skip "MPICH is not installed"
    cat >mpi.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d is %s of %d, sum %d\n", rank, getenv("DT_ROLE_RANK"), size, sum);
    return MPI_Finalize();
}
END
    mpicc.mpich -o mpi mpi.c
    trial packed 0 4 <<<$'#!/bin/bash\nsrun --mpi=pmi2 ./mpi'
    run_trial
    [ "$code" = 0 ]
    for r in 0 1 2 3; do
        grep -qx "rank $r is $r of 4, sum 6" out
    done
}

@test "signals to the batch script and through srun reach script and tasks" {
    trial packed 1 2 <<'END'
#!/bin/bash
trap 'echo script got USR1; kill -USR1 $!' USR1
trap 'echo script got TERM; exit 7' TERM
srun bash -c 'trap "echo $DT_ROLE got USR1" USR1; echo up; for i in {1..3000}; do sleep 0.1; done' &
while :; do wait; done
END
    job=$(sbatch --parsable trial.sh)
    up() { [ "$(grep -cx up out)" = 3 ]; }
    wait_for 60 up
    scancel --batch --signal=USR1 "$job"
    heard() { grep -qx 'script got USR1' out && grep -q 'ps got USR1' out && grep -q 'worker got USR1' out; }
    wait_for 60 heard
    scancel --batch --signal=TERM "$job"
    wait_for 120 job_ended "$job"
    cat out
    grep -qx 'script got TERM' out
    [ "$(json "$dir/end.json" 'o["exit_code"], o["signal"]')" = "(7, 0)" ]
}

@test "scancel: end.json is still written" {
    trial het 1 2 <<<$'#!/bin/bash\nsrun sleep 300'
    job=$(sbatch --parsable trial.sh)
    launched() { [ -e "$dir/worker-1.log" ]; }
    wait_for 60 launched
    scancel "$job"
    wait_for 120 job_ended "$job"
    wait_for 60 test -e "$dir/end.json"
    [ "$(json "$dir/end.json" 'o["exit_code"] != 0 and "failed" not in o')" = True ]
}

@test "a trial whose tuning job is gone does not start" {
    gone=$(sbatch --parsable --output=/dev/null --wrap true)
    wait_for 120 job_ended "$gone"
    for id in 999999 "$gone"; do
        trial packed 1 2 ',"tuner_job":'"$id" <<<$'#!/bin/bash\ntouch started'
        run_trial
        [ "$code" = 1 ]
        grep -q "tuning job $id is gone" out
        [ ! -e started ]
        [ ! -e "$dir/start.json" ]
    done
}

@test "the tuner hears of a trial's end" {
    cat >tuner.sh <<'END'
#!/bin/bash
trap 'echo told >told; exit' USR1
echo >ready
for i in {1..3000}; do sleep 0.1; done
END
    tuner=$(sbatch --parsable --output=/dev/null tuner.sh)
    wait_for 60 test -e ready
    trial packed 0 1 ',"tuner_job":'"$tuner" <<<$'#!/bin/bash\nsrun true'
    run_trial
    [ "$code" = 0 ]
    wait_for 60 test -e told
}

@test "dt-launch outside of a trial: het job is servers and workers, plain job workers" {
    dump_program
    cat >job.sh <<END
#!/bin/bash
#SBATCH -N1 --ntasks=1 --output=$work/out
#SBATCH hetjob
#SBATCH -N2 --ntasks=3
$DT_BUILD/dt-launch ./dump.py
END
    job=$(sbatch --parsable job.sh)
    wait_for 60 job_ended "$job"
    cat out
    [ "$(json env-worker-2.json 'o["DT_RANK"], o["WORLD_SIZE"], o["DT_TRIAL_DIR"]')" = "('3', '4', '$work/dt-job-$job')" ]
    [ "$(json env-ps-0.json 'o["DT_RANK"], o["DMLC_ROLE"]')" = "('0', 'server')" ]
    sbatch --wait -N2 --ntasks=3 --output=out2 --wrap "$DT_BUILD/dt-launch bash -c 'echo \$DT_ROLE \$RANK/\$WORLD_SIZE'"
    [ "$(sort out2 | tr '\n' ,)" = 'worker 0/3,worker 1/3,worker 2/3,' ]
}

@test "wrong use is one line and status 2" {
    run "$DT_BUILD/dt-launch" true
    [ "$status" -eq 2 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *SLURM_JOB_ID* ]]
    run "$DT_BUILD/dt-launch" --help
    [ "$status" -eq 0 ]
    [[ $output == Usage:* ]]
    trial packed 9 9 <<<$'#!/bin/bash\nsrun true; echo "code $?"'
    run_trial
    grep -qx 'code 2' out
    grep -q 'role worker: task 9 of 9 finds no node with 2 free CPUs' out
}
