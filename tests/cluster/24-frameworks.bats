#!/usr/bin/env bats
# What the frameworks find: the environment of every task by each framework's rules, in all layouts; the
# coordinators; and real runs of those that Debian has (PyTorch with torchrun and with RPC servers).

# shellcheck disable=SC2030,SC2031
bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true examples pages
    examples=$(cd "$BATS_TEST_DIRNAME/../../etc/examples" && pwd)
    pages=$(cd "$BATS_TEST_DIRNAME/../../tools" && pwd)
    cluster_up --nodes 4 --cpus 4
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    cd "$BATS_TEST_TMPDIR" || return
}

# A program that leaves its environment behind, and ends as its framework has it: servers, and with a chief
# the workers too, only when they are told. Who ends by itself waits for the others' environments.
program() {
    cat >dump.py <<'END'
#!/usr/bin/python3
import json, os, signal, sys, time
e = os.environ
name = "env-%s-%s.json" % (e["DT_ROLE"], e["DT_ROLE_RANK"])
with open(name + ".new", "w") as f:
    json.dump(dict(e), f)
os.rename(name + ".new", name)
cluster = json.loads(e.get("TF_CONFIG", '{"cluster": {}}'))["cluster"]
leader = "chief" if "chief" in cluster else "worker"
if e["DT_ROLE"] != leader:
    time.sleep(600)
want = ["env-%s-%d.json" % (r, i) for r in cluster for i in range(len(cluster[r]))]
want += ["env-scheduler-0.json"] if os.path.exists("scheduler") else []
while not all(map(os.path.exists, want)):
    time.sleep(0.05)
END
    chmod +x dump.py
    printf '#!/bin/bash\n#SBATCH --ntasks=3 --mem-per-cpu=100M --time=5\nsrun ./dump.py\n' >train.sh
}

# environment LAYOUT [COORDINATOR]: 1 server and 2 workers leave their environment here; prints the table.
environment() {
    local job het
    program
    [ "$1" != het ] || het=', "layout": "het"'
    printf '{"dt": {"ps": [1], "workers": [2]}, "layout": "%s", "search": {"max_configs": 1, "repeats": 0}%s}\n' \
        "$1" "${2:+, \"launch\": {\"coordinator\": \"$2\"\}}" >spec.json
    [ "${2-}" != scheduler ] || touch scheduler
    if [ "$1" = steps ]; then
        job=$(sbatch --parsable --output=out -N 1 --dt-tune=spec.json train.sh)
    else
        printf '{"ps": 1, "workers": 2%s}\n' "${het-}" >c.json
        "$DT_BUILD/dt-tune" expand --spec=spec.json --config=c.json train.sh >trial.sh
        job=$(sbatch --parsable --output=out trial.sh)
    fi
    wait_for 120 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ] || { cat out && return 1; }
    "$BATS_TEST_DIRNAME/environment-table" . >table
}

het() { environment het; }
packed() { environment packed; }
steps() { environment steps; }
het_chief() { environment het chief; }
packed_scheduler() { environment packed scheduler; }
steps_scheduler() { environment steps scheduler; }

@test "every framework's rules hold in every layout, and the manual has the table" {
    at_once het packed steps
    diff packed/table steps/table
    sed 's/\\-/-/g; s/\\(dq/"/g' "$pages/dt-tune-frameworks.7" >page
    for layout in het packed; do
        cat $layout/table
        missing=$(grep -vxFf page $layout/table) || true
        [ -z "$missing" ] || { echo "not in the page: $missing" && return 1; }
    done
}

@test "chief and scheduler: a task more that others know of but do not count; the chief's end is the end" {
    at_once het_chief packed_scheduler steps_scheduler
    cat het_chief/table packed_scheduler/table
    [ "$(ls het_chief/env-chief-0.json packed_scheduler/env-scheduler-0.json steps_scheduler/env-scheduler-0.json | wc -l)" = 3 ]
    grep -q '^DMLC_ROLE *server *worker *worker *scheduler$' packed_scheduler/table
    grep -q '"chief":\["a:P3"\]' het_chief/table
    # what is submitted in the configuration that a study found has it too
    cd steps_scheduler
    grep -q '"coordinator":"scheduler"' dt-tune-*/best.sh
    for study in "" "=$(echo dt-tune-*)"; do
        DT_TUNE_HISTORY=$PWD/history sbatch "--dt-apply$study" --dt-dry-run train.sh >applied
        grep -q '"coordinator":"scheduler"' applied
    done
}

# trains SCRIPT CONFIG [ARGUMENTS]: runs one configuration of an example; its output in `out`.
trains() {
    local job config=$2 script=$1
    shift 2
    cp "$examples"/*.py "$examples"/*.sh .
    printf '%s\n' "$config" >c.json
    # redirects: torchrun of PyTorch 1.13 fails without any under Python 3.11; libuv: Debian's newer ones are without
    export USE_LIBUV=0 PYTHON=/usr/bin/python3 PET_REDIRECTS=1 PET_TEE=1 PET_LOG_DIR=$PWD/logs
    job=$("$DT_BUILD/dt-sbatch" --parsable --output=out --dt-config=c.json "$script" "$@")
    wait_for 280 job_ended "$job" # several of them at once load PyTorch many times
    [ "$(job_state "$job")" = COMPLETED ] || { cat out && return 1; }
}

# A script of a public tutorial's shape: its own rendezvous, from Slurm's variables; at the last of the ports that are kept
# for this cluster.
torchrun_own_rendezvous() {
    local first
    first=$(scontrol show config | sed -nE 's/^SlurmctldPort *= *([0-9]+).*/\1/p')
    printf '%s\n' '#!/bin/bash' '#SBATCH --ntasks=2 --mem-per-cpu=800M --time=5' \
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)' \
        'getent hosts "$head" >/dev/null || head=$(hostname) # virtual nodes have no address' \
        'srun torchrun --nnodes="$SLURM_NTASKS" --nproc_per_node=1 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \' \
        "    --rdzv_endpoint=\"\$head:$((first + 127))\" ddp.py --epochs 1" >own.sh
    trains own.sh '{"workers": 2}'
    grep -q 'worker 0.*done: step 22' out
    # As most tutorials have it: warned of where workers vary, before anything is submitted.
    sed -i 's/--nnodes="$SLURM_NTASKS"/--nnodes 2/' own.sh
    "$DT_BUILD/dt-sbatch" --dt-tune --dt-workers=1-3 --dt-dry-run own.sh >out 2>err
    grep -qF 'own.sh:5: --nnodes 2 is the same in every trial' err
    "$DT_BUILD/dt-sbatch" --dt-tune --dt-workers=2 --dt-param=lr=1e-4..0.1 --dt-dry-run own.sh >out 2>err
    [ ! -s err ]
}

torchrun_defaults() {
    trains torchrun.sh '{"workers": 2}' --epochs 1
    grep -q 'worker 0.*done: step 22' out
    [ "$(grep -c 'worker 1.*step 20' out)" = 1 ]
}

rpc_servers() {
    trains ps_async.sh '{"ps": 1, "workers": 2, "layout": "het"}' --epochs 1
    grep -q 'worker 0.*done: step 22' out
}

tutorial() {
    mkdir bin
    ln -s /usr/bin/python3 bin/python3
    PATH=$PWD/bin:$PATH trains digits.sh '{"workers": 2}'
    grep -q '^epoch 7 accuracy 0' out
}

@test "PyTorch: torchrun with its defaults and with a rendezvous of its own; RPC parameter servers; the tutorial" {
    /usr/bin/python3 -c 'import torch, sklearn' 2>/dev/null || skip "no PyTorch or scikit-learn"
    local kinds=(tutorial)
    # Debian's PyTorch from 2.6 on has neither what its torchrun's rendezvous needs (libuv) nor, later, what RPC needs.
    if command -v torchrun >/dev/null && /usr/bin/python3 -c 'from torch.distributed import TCPStore
TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)' 2>/dev/null; then
        kinds+=(torchrun_defaults torchrun_own_rendezvous)
    fi
    if has_servers /usr/bin/python3; then
        kinds+=(rpc_servers)
    fi
    echo "# ${kinds[*]}" >&3
    at_once "${kinds[@]}"
}
