#!/usr/bin/env bats
# Layout steps on a real Slurm: trials are steps in the tuning job's own allocation. Two CPUs a node, as CPU masks are real
# only for CPUs that this machine has.

# shellcheck disable=SC2030,SC2031
bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    # a tuner that is told to end has time to say so, however busy the machine
    cluster_up --nodes 4 --cpus 2 --gpus 2 --conf TaskPlugin=task/affinity --conf KillWait=30
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    cd "$BATS_TEST_TMPDIR" || return
    # Each task says where it is and what it may use, and waits until it is told to go on.
    cat >task.sh <<'END'
#!/bin/bash
mask=$(sed -nE 's/^Cpus_allowed_list:\t//p' /proc/self/status)
echo "$DT_TRIAL $DT_ROLE $SLURMD_NODENAME $mask ${SLURM_STEP_GPUS:--} $$" >>seen
[ -z "$NESTED" ] || srun -n 1 bash -c 'echo $DT_TRIAL $SLURMD_NODENAME >>nested'
until [ -e released ]; do sleep 0.05; done
dt-tune metric "loss=${DT_PARAM_lr:-1}"
END
    chmod +x task.sh
    printf '#!/bin/bash\nsrun ./task.sh\n' >train.sh
    : >seen
    : >nested
}

teardown() {
    scancel -u "$(id -un)" 2>/dev/null || true
}

# spec WORKERS PS TRIALS [MORE]: spec.json, a grid of so many trials of one shape.
spec() {
    cat >spec.json <<END
{ "dt": {"workers": {"choices": [$1]}, "ps": {"choices": [$2]} ${4-}},
  "hyperparameters": {"lr": {"type": "int", "low": 1, "high": $3}},
  "objective": {"metric": "loss", "goal": "minimize"}, "layout": "steps",
  "search": {"algorithm": "grid", "repeats": 0, "max_configs": $3} }
END
}

# start OPTION...: submits a study; sets job and dir.
start() {
    job=$(sbatch --parsable --dt-tune=spec.json -t 10 "$@" train.sh)
    dir=$PWD/dt-tune-$job
}

seen() {
    [ "$(wc -l <seen)" -ge "$1" ]
}

event() {
    [ "$(grep -c "\"event\":\"$1\"" "$dir/journal.jsonl")" -ge "${2-1}" ]
}

# ended: waits for the study's end, which must be a good one.
ended() {
    wait_for 120 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ] || {
        cat "slurm-$job.out" "$dir"/trials/*/output.log
        return 1
    }
}

# disjoint FILE: no CPU and no GPU of a node is in two lines.
disjoint() {
    /usr/bin/python3 - "$1" <<'END'
import sys
taken = set()
def ids(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
for line in open(sys.argv[1]):
    trial, role, node, mask, gpus, pid = line.split()
    mine = {(node, "cpu", i) for i in ids(mask)}
    if gpus != "-":
        mine |= {(node, "gpu", i) for i in ids(gpus)}
    if taken & mine:
        sys.exit(f"in two tasks: {sorted(taken & mine)}")
    taken |= mine
END
}

# No task is left; one that is dead but that nobody has asked about does not count.
processes_gone() {
    local pid
    while read -r _ _ _ _ _ pid; do
        case $(ps -o stat= -p "$pid") in
        '' | Z*) ;;
        *) return 1 ;;
        esac
    done <seen
}

# values KEY: of all trials, from the report.
values() {
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
print(*[t.get(sys.argv[1]) for t in json.load(sys.stdin)["trials"]])' "$1"
}

@test "four trials at a time share two nodes, each with CPUs, memory and a GPU of its own" {
    spec 1 0 6 ', "worker_gpus": {"choices": [1]}'
    start -N 2 --ntasks-per-node=2 --mem=400M --gpus-per-task=1
    wait_for 60 seen 4
    wait_for 60 event deferred # the fifth has no room
    [ "$(wc -l <seen)" = 4 ]
    [ "$(cut -d' ' -f3 seen | sort | uniq -c | xargs)" = "2 h1 2 h2" ]
    [ "$(squeue -h -o %j)" = train.sh ] # there is one job, and it was not made small
    [[ $(scontrol show job "$job") == *"NumNodes=2 NumCPUs=4"* ]]
    squeue -h -s -j "$job" -o %j | grep -v batch | sort >steps
    printf "train.sh.dt-$job-%d-1.worker\n" 1 2 3 4 | diff - steps
    [ "$(scontrol show step "$job" | grep -c 'TRES=cpu=1,mem=200M,node=1')" = 4 ]
    if [ "$(nproc)" -ge 2 ]; then
        disjoint seen
    fi
    touch released
    ended
    [ "$(values status)" = "ok ok ok ok ok ok" ]
    [ "$(values queue_s)" = "0 0 0 0 0 0" ]
    [ "$(values nodes)" = "0.5 0.5 0.5 0.5 0.5 0.5" ]
    [ "$(values billing)" = "1 1 1 1 1 1" ]
    grep -q '^  layout steps: as asked; ' "slurm-$job.out"
    grep -q '^allocation: 2 nodes, 4 CPUs, 800 MiB, 4 GPUs; for ' "slurm-$job.out"
    grep -q '^as submitted: not among the configurations' "slurm-$job.out"
    run ! grep -q ' waits: ' "slurm-$job.out"
    # what was found is a job of its own, no larger than it has to be
    grep -q '^#SBATCH --ntasks=1$' "$dir/best.sh"
    run ! grep -q '^#SBATCH --nodes' "$dir/best.sh"
    sbatch --test-only "$dir/best.sh"
}

@test "servers and workers of a trial share nodes; what it starts besides stays in its share" {
    # a step beside the roles sees the trial's nodes, waits for nobody, and takes nothing from others
    cat >train.sh <<'END'
#!/bin/bash
env | sort >"env-$DT_TRIAL"
srun -n 1 true
srun -n 3 bash -c 'echo $SLURMD_NODENAME' >"side-$DT_TRIAL" &
NESTED=1 srun ./task.sh
wait
END
    spec 2 2 2
    start -N 4 --ntasks-per-node=2 --mem=400M
    wait_for 60 seen 8
    if [ "$(nproc)" -ge 2 ]; then
        disjoint seen
    fi
    [ "$(awk '{ print $1, $3 }' seen | sort -u | wc -l)" = 4 ] # two trials, two nodes each
    grep -qx 'SLURM_JOB_NUM_NODES=2' env-1
    grep -qx 'SLURM_JOB_CPUS_PER_NODE=2(x2)' env-1
    grep -qx "SLURM_JOB_ID=$job" env-2
    run ! grep -q '^SLURM_NTASKS_PER_NODE=\|^CUDA_VISIBLE_DEVICES=\|^SLURM_STEP_ID' env-1
    all_nested() { [ "$(wc -l <nested)" = 8 ]; }
    wait_for 60 all_nested
    for trial in 1 2; do
        wait_for 60 test -s "side-$trial"
        awk -v t=$trial '$1 == t { print $3 }' seen | sort -u >nodes
        [ -z "$(sort -u "side-$trial" | comm -23 - nodes)" ]
        sed -n "s/^$trial //p" nested | sort -u >inner # by a task
        [ -z "$(comm -23 inner nodes)" ] && [ -s inner ]
    done
    touch released
    ended
    [ "$(values status)" = "ok ok" ]
}

@test "scancel leaves nothing of the trials, and the study can be resumed" {
    spec 1 1 3
    start -N 2 --ntasks-per-node=2 --mem=400M
    wait_for 60 seen 4
    # the tasks are told before the tuner, which sees the end of some of them
    tuner=$(pgrep -of "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")
    stepd=$(ps -o ppid:1= -p "$tuner")
    kill -STOP "$stepd"
    scancel "$job"
    wait_for 60 event ended
    kill -CONT "$stepd"
    wait_for 60 job_ended "$job"
    wait_for 60 processes_gone
    grep -q '"interrupted":true' "$dir/journal.jsonl"
    grep -q '^go on with: dt-sbatch --dt-tune --dt-layout=steps --dt-resume=' "slurm-$job.out"
    run sbatch -W --parsable -o wrong.out --dt-tune --dt-resume="$dir" "$dir/script"
    grep -q 'go on with it by --dt-layout=steps, in a job as large' wrong.out
    touch released
    job=$(sbatch --parsable -N 1 --ntasks-per-node=2 --mem=400M --dt-tune --dt-layout=steps --dt-resume="$dir" "$dir/script")
    ended
    [ "$(values status)" = "ok ok ok" ]
    [ "$(grep -c '"event":"submitted","trial":[12],.*"run":2' "$dir/journal.jsonl")" = 2 ]
}

@test "in the foreground of an allocation; a tuner that is killed takes its trials along, and nothing else" {
    cat >here.sh <<'END'
#!/bin/bash
srun -n 1 -N 1 --overlap --mem=0 sleep 1000 &
dt-sbatch --here --dt-tune=spec.json train.sh >here.out 2>&1 &
echo $! >tuner
until [ -e over ]; do sleep 0.05; done
kill %1
END
    spec 1 0 4
    sed -i 's/^until.*/sleep 1000/' task.sh
    alloc=$(sbatch --parsable -N 1 --ntasks-per-node=2 --mem=400M here.sh)
    wait_for 60 seen 2
    kill -KILL "$(cat tuner)"
    wait_for 60 processes_gone
    only_the_sleep() { [ "$(squeue -h -s -j "$alloc" -o %j | grep -v batch)" = sleep ]; }
    wait_for 60 only_the_sleep
    touch over
}

@test "without an allocation there are no steps" {
    spec 1 0 2
    run --separate-stderr -2 dt-sbatch --here --dt-tune=spec.json train.sh
    # shellcheck disable=SC2154
    [[ $stderr == "dt-tune: layout steps: there is no allocation here, SLURM_JOB_ID is not set; "* ]]
    [ -z "$(ls -d dt-tune-* 2>/dev/null)" ]
}

@test "dt-sbatch keeps the job's resources too; what never fits is left out, with its reason" {
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1, 2, 3]}, "ps": {"choices": [0]}},
  "objective": {"metric": "loss", "goal": "minimize"}, "layout": "steps", "search": {"algorithm": "grid", "repeats": 0} }
END
    touch released
    job=$(dt-sbatch --parsable --dt-tune=spec.json -n 2 --mem=400M -t 10 train.sh)
    dir=$PWD/dt-tune-$job
    ended
    [[ $(scontrol show job "$job") == *"NumNodes=1 NumCPUs=2"* ]]
    grep -q '1 excluded: layout steps: more CPUs, memory or GPUs than the job.s allocation has' "slurm-$job.out"
    [ "$(values status)" = "ok ok" ] # the job as submitted, two workers, and one worker
    grep -q '^as submitted: workers=2 ps=0$' "slurm-$job.out"
    dt-sbatch --dt-tune=spec.json --dt-dry-run -n 2 train.sh >dry
    grep -q '^# not for sbatch: the tuner starts it in its own allocation' dry
    grep -q '^# worker: 2 x 1 CPU$' dry
    run ! grep -q '^#SBATCH --ntasks' dry
    job=$(dt-sbatch --parsable --dt-tune=spec.json --dt-max-configs=1 -n 2 --mem=400M -t 10 --wrap 'srun ./task.sh')
    dir=$PWD/dt-tune-$job
    ended
}

@test "a script that does its work without srun was not in its share" {
    printf '#!/bin/bash\ndt-tune metric loss=1\n' >train.sh
    spec 1 0 1
    start -N 1 --ntasks-per-node=2
    wait_for 60 job_ended "$job"
    [ "$(values cause)" = "roles not started" ]
    grep -q "with layout steps start it by srun or dt-launch" "slurm-$job.out"
}

@test "a trial at its target is ended, its neighbour goes on" {
    cat >task.sh <<'END'
#!/bin/bash
echo "$DT_TRIAL $DT_ROLE $SLURMD_NODENAME 0 - $$" >>seen
until [ -e released ]; do sleep 0.05; done
until [ "$DT_PARAM_lr" = 1 ] || [ -e neighbour ]; do sleep 0.05; done
dt-tune metric acc=1
sleep 1000
END
    cat >spec.json <<'END'
{ "dt": {"workers": {"choices": [1]}, "ps": {"choices": [0]}}, "hyperparameters": {"lr": {"choices": [1, 2]}},
  "target": {"metric": "acc", "at_least": 1}, "layout": "steps",
  "search": {"algorithm": "grid", "repeats": 0, "max_configs": 2} }
END
    start -N 1 --ntasks-per-node=2
    wait_for 60 seen 2
    touch released
    wait_for 60 event ended
    one_goes_on() { [ "$(squeue -h -s -j "$job" -o %j | grep -c worker)" = 1 ]; }
    wait_for 60 one_goes_on
    touch neighbour
    ended
    [ "$(values cause)" = "target reached target reached" ]
    wait_for 60 processes_gone
}

@test "where the allocation's time is nearly over, no trial is begun" {
    spec 1 0 2
    touch released
    printf '#!/bin/bash\ndt-sbatch --here --dt-tune=spec.json train.sh >here.out 2>&1\necho $? >status\n' >here.sh
    sbatch -W -N 1 -n 2 -t 1 here.sh
    grep -q '^stopped: time: that of the allocation is nearly over$' here.out
    [ "$(cat status)" = 1 ]
    [ ! -s seen ]
}

@test "a re-allocated trial goes on at once in its new share" {
    cat >task.sh <<'END'
#!/bin/bash
# the first run has no end of its own, and its server is busy; asked for a checkpoint, a worker writes it and the tasks end
trap 'touch "$DT_CHECKPOINT_DIR/saved"; exit 143' USR1
step=$((100 * DT_RESTARTS))
until [ "$DT_RESTARTS $step" = "1 106" ]; do
    [ "$DT_ROLE" != ps ] || { for ((i = 0; i < 20000; i++)); do :; done && continue; }
    step=$((step + 1))
    [ "$DT_ROLE_RANK" != 0 ] || dt-tune metric step=$step
    sleep 0.3
done
END
    cat >spec.json <<'END'
{ "dt": {"ps": {"low": 1, "high": 2}, "workers": [1]}, "layout": "steps", "monitor": {"period_s": 0.5},
  "reallocate": {"rule": "thresholds", "high": 4, "low": 2, "high_samples": 2, "low_samples": 4},
  "search": {"max_configs": 1, "repeats": 0} }
END
    start -N 2 --ntasks-per-node=2 --mem=400M
    ended
    grep -qE '^ +1 run 1 wrote its checkpoint and ended after .* goes on with ps=2 workers=1' "slurm-$job.out"
    [ "$(values status)" = ok ]
    [ "$(grep -c '"event":"submitted"' "$dir/journal.jsonl")" = 2 ]
}

@test "nodes that no trial will use any more go back to Slurm, and the last trials go on" {
    cat >train.sh <<'END'
#!/bin/bash
srun bash -c 'echo "$DT_TRIAL" >>seen; until [ -e released-$DT_TRIAL ]; do sleep 0.05; done'
[ "$DT_TRIAL" = 2 ] || exit 0
srun bash -c 'echo $SLURMD_NODENAME >>after; until [ -e over ]; do sleep 0.05; done; dt-tune metric loss=1'
END
    spec 2 0 2
    start -N 4 --ntasks-per-node=2 --mem=400M
    wait_for 60 seen 4
    given_back() { [[ $(scontrol show job "$job") == *"NumNodes=2 NumCPUs=4"* ]]; }
    wait_for 60 given_back
    [ "$(grep -c '"event":"released"' "$dir/journal.jsonl")" = 1 ]
    grep -qx 'gives back 2 nodes, which no trial will use any more: h3,h4' "slurm-$job.out"
    srun -w h3,h4 -N 2 --exclusive --immediate=120 true # they are there for others
    touch released-2 # steps begin in what is left
    wait_for 60 test -s after
    [ "$(sort -u after)" = h2 ]
    touch released-1
    wait_for 60 event ended
    [ "$(grep -c '"event":"released"' "$dir/journal.jsonl")" = 1 ] # the tuner itself is on the first
    touch over
    ended
    [ "$(values nodes)" = "1 1" ]
    [ "$(values billing)" = "2 2" ]
    [ "$(values cause)" = "no metric ok" ]
}

@test "an allocation that is somebody else's keeps its nodes" {
    printf '#!/bin/bash\ndt-sbatch --here --dt-tune=spec.json train.sh\n' >here.sh
    spec 1 0 1
    alloc=$(sbatch --parsable -N 2 --ntasks-per-node=2 --mem=400M here.sh)
    wait_for 60 seen 1
    [[ $(scontrol show job "$alloc") == *"NumNodes=2 NumCPUs=4"* ]]
    touch released
    wait_for 60 job_ended "$alloc"
    run -1 grep -q '"event":"released"' dt-tune-*/journal.jsonl
}

@test "the processes of mpiexec are on the trial's nodes, within its share" {
    command -v mpicc.mpich >/dev/null || skip "MPICH is not installed"
    cat >mpi.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* The node as Slurm calls it is in the environment of mpiexec's own process there, its parent. */
static void node_of(char *name)
{
    char path[64], env[65536], *at;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)getppid());
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(env, 1, sizeof(env) - 1, f) : 0;
    env[n] = 0;
    for (at = env; at < env + n; at += strlen(at) + 1)
        sscanf(at, "SLURMD_NODENAME=%63s", name);
    if (f)
        fclose(f);
}
static void cpus_of(char *list)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "Cpus_allowed_list: %63s", list);
    if (f)
        fclose(f);
}
int main(int argc, char **argv)
{
    int rank, size, sum;
    char node[64] = "?", cpus[64] = "?";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    node_of(node);
    cpus_of(cpus);
    printf("%s rank %d of %d sum %d cpus %s\n", node, rank, size, sum, cpus);
    return MPI_Finalize();
}
END
    mpicc.mpich -o mpi mpi.c
    # one with the number of processes, one without; three of them on two nodes
    cat >train.sh <<'END'
#!/bin/bash
env >"env-$DT_TRIAL"
touch "begun-$DT_TRIAL"
until [ -e begun-1 ] && [ -e begun-2 ]; do sleep 0.05; done
if [ "$DT_TRIAL" = 1 ]; then n="-n $SLURM_NTASKS"; fi
mpiexec.hydra $n ./mpi >"out-$DT_TRIAL" && dt-tune metric loss=1
END
    spec 3 0 2
    start -N 4 --ntasks-per-node=2 --mem=400M
    ended
    cat "$dir"/trials/*/output.log
    [ "$(values status)" = "ok ok" ]
    for trial in 1 2; do
        cat out-$trial
        [ "$(grep -c ' of 3 sum 3 ' out-$trial)" = 3 ]
        cut -d' ' -f1 out-$trial | sort | uniq -c | awk '{ print $2, $1 }' >nodes-$trial
        names=$(sed -nE 's/^SLURM_JOB_NODELIST=//p' env-$trial)
        printf '%s 2\n%s 1\n' "${names%,*}" "${names#*,}" | diff - nodes-$trial
        # both processes of a node have both of its CPUs, the third has one
        [ "$(nproc)" -lt 2 ] || [ "$(sort out-$trial | sed 's/.* cpus //' | xargs)" = "0-1 0-1 0" ]
    done
    [ -z "$(cut -d' ' -f1 nodes-1 nodes-2 | sort | uniq -d)" ]
    # a server is nothing that it can start
    printf '#!/bin/bash\nmpiexec.hydra ./mpi\n' >train.sh
    spec 2 1 1
    start -N 2 --ntasks-per-node=2 --mem=400M
    wait_for 60 job_ended "$job"
    grep -q 'a trial with servers cannot be started by mpiexec' "$dir/trials/0001/output.log"
}

@test "a training with parameter servers" {
    export PYTHON=${PYTHON-/usr/bin/python3}
    has_servers "$PYTHON" || skip "no PyTorch with RPC, or no scikit-learn"
    cp "$BATS_TEST_DIRNAME"/../../etc/examples/{ps_sync.sh,ps_train.py,ddp.py,train_common.py,dt_tune.py} .
    job=$(sbatch --parsable -N 1 -n 2 --dt-tune --dt-layout=steps --dt-ps=1 --dt-workers=1 \
        '--dt-param=batch_size={32,64}' --dt-max-configs=2 --dt-repeats=0 --dt-objective=min:loss ps_sync.sh --epochs 3)
    dir=$PWD/dt-tune-$job
    wait_for 300 job_ended "$job"
    ended
    [ "$(values status)" = "ok ok" ]
    grep -h '"step"' "$dir"/trials/*/metrics.jsonl | grep -q loss
}
