#!/usr/bin/env bats
# Tasks sit where their GPU is: the CPU masks and CUDA_VISIBLE_DEVICES that they find are those of the plan. Two CPUs a
# node, as masks are real only for CPUs that this machine has; the topology of the nodes is made up, and crosses them:
# GPU 0 and the network are next to CPU 1, GPU 1 is next to CPU 0.

# shellcheck disable=SC2030,SC2031
bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --kind '4 Sockets=2 CoresPerSocket=1 RealMemory=4096 Gres=gpu:2' --conf TaskPlugin=task/affinity
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    [ "$(nproc)" -ge 2 ] || skip "one CPU leaves nothing to choose"
    cd "$BATS_TEST_TMPDIR" || return
    mkdir machines
    machine >'machines/h[1-4].xml'
    # Each task says where it is and what it may use, and stays until all of its trial have.
    cat >task.sh <<'END'
#!/bin/bash
mask=$(taskset -p $$)
read -r _ memory _ </proc/self/numa_maps
echo "$DT_TRIAL $DT_ROLE $DT_ROLE_RANK $memory" >>memory
echo "$DT_TRIAL $DT_ROLE $DT_ROLE_RANK $SLURMD_NODENAME ${mask##* } ${CUDA_VISIBLE_DEVICES--} ${DT_CPU_LIST--}" >>seen
until [ "$(grep -c "^$DT_TRIAL " seen)" -ge "$WORLD_SIZE" ]; do sleep 0.05; done
dt-tune metric loss=1
END
    chmod +x task.sh
    : >seen
    : >memory
}

teardown() {
    scancel -u "$(id -un)" 2>/dev/null || true
}

# half CPU CLASS@BUS...: one of the two processors, with PCI devices; in the form that hwloc reads without libxml2.
half() {
    local mask=$((1 << $1)) id=$((100 * ($1 + 1))) sets device
    printf -v sets 'cpuset="0x%x" complete_cpuset="0x%x" nodeset="0x%x" complete_nodeset="0x%x"' $mask $mask $mask $mask
    cat <<END
<object type="Package" os_index="$1" $sets gp_index="$id">
<object type="NUMANode" os_index="$1" $sets gp_index="$((id + 1))" local_memory="1073741824"/>
<object type="Core" os_index="$1" $sets gp_index="$((id + 2))">
<object type="PU" os_index="$1" $sets gp_index="$((id + 3))"/>
</object>
<object type="Bridge" gp_index="$((id + 4))" bridge_type="0-1" depth="0" bridge_pci="000$1:[00-ff]">
END
    for device in "${@:2}"; do
        id=$((id + 10))
        echo "<object type=\"PCIDev\" gp_index=\"$id\" pci_busid=\"${device#*@}\" pci_type=\"${device%@*} [10de:1db8] [10de:131d] a1\" pci_link_speed=\"0.000000\">"
        case $device in
        0207@*) echo "<object type=\"OSDev\" gp_index=\"$((id + 1))\" name=\"mlx5_0\" osdev_type=\"3\"/>" ;;
        esac
        echo "</object>"
    done
    printf '</object>\n</object>\n'
}

# machine [apart]: GPU 0 and the network are next to CPU 1, GPU 1 next to CPU 0; apart: GPU 0 next to CPU 0, GPU 1 and the
# network next to CPU 1.
machine() {
    local near=(0302@0001:20:00.0) far=(0302@0000:10:00.0 0207@0000:11:00.0)
    if [ "${1-}" = apart ]; then
        near=(0302@0000:10:00.0) far=(0302@0001:20:00.0 0207@0001:21:00.0)
    fi
    cat <<END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
END
    half 0 "${near[@]}"
    half 1 "${far[@]}"
    printf '</object>\n</topology>\n'
}

# spec LAYOUT PS WORKERS [MORE]: spec.json with one configuration, the workers on one node; MORE: of "placement".
spec() {
    cat >spec.json <<END
{ "dt": {"ps": {"choices": [$2]}, "workers": {"choices": [$3]}, "worker_nodes": {"choices": [1]}},
  "objective": {"metric": "loss", "goal": "minimize"}, "layout": "$1",
  "placement": {"topology": "$PWD/machines"${4-}}, "search": {"repeats": 0} }
END
}

# study COMMAND OPTION...: tunes a script with that command to the end: the job as submitted, and that configuration.
study() {
    [ -c "$DT_CLUSTER_DIR/dev/gpu0" ] || skip "without device files Slurm does not say which GPUs a task has"
    printf '#!/bin/bash\n%s\n' "$1" >train.sh
    job=$(sbatch --parsable --dt-tune=spec.json -t 10 "${@:2}" train.sh)
    wait_for 120 job_ended "$job"
    if [ "$(job_state "$job")" != COMPLETED ]; then
        cat "slurm-$job.out" dt-tune-"$job"/trials/*/output.log seen
        return 1
    fi
    sort -o seen seen
    cat seen
}

# as_planned TRIAL TASKS: the tasks of these roles have seen, on each of their nodes, what the plan for such tasks says.
as_planned() {
    dt-tune topo --machine='machines/h[1-4].xml' --plan="$2" --format=json >plan.json
    /usr/bin/python3 - "$1" <<'END'
import json, os, sys

def policy(numa):  # as far as this machine has such a node
    return f"prefer:{numa}" if os.path.exists(f"/sys/devices/system/node/node{numa}") else "default"

plan = json.load(open("plan.json"))
want = [[t["role"], t["mask"][2:], ",".join(map(str, t["gpus"])) or "-", t["cpus"], policy(t["memory"])] for t in plan]
memory = {tuple(line.split()[:3]): line.split()[3] for line in open("memory")}
nodes = {}
for t in sorted((line.split() for line in open("seen")), key=lambda t: (t[1], int(t[2]))):
    if t[0] == sys.argv[1] and t[1] in [w[0] for w in want]:
        nodes.setdefault(t[3], []).append([t[1]] + t[4:] + [memory[tuple(t[:3])]])
wrong = {node: seen for node, seen in nodes.items() if seen != want}
sys.exit(f"not as planned, {want}: {wrong or 'nothing'}" if wrong or not nodes else 0)
END
}

# found TRIAL ROLE RANK MASK GPU CPUS: that task has seen this.
found() {
    [[ $(grep "^$1 $2 $3 " seen) == "$1 $2 $3 h"?" $4 $5 $6" ]]
}

@test "het: workers at their GPUs, the first server at the network" {
    spec het 2 2
    study 'srun ./task.sh' -n 2 --gpus-per-task=1
    found 2 ps 0 2 - 1
    found 2 ps 1 1 - 0
    found 2 worker 0 2 0 1
    found 2 worker 1 1 1 0
    as_planned 2 2xworker:1:1
    # the job as submitted is Slurm's alone
    found 1 worker 0 1 0 -
    found 1 worker 1 2 1 -
    grep -qx '1 worker 0 default' memory
}

@test "packed, one role: workers at their GPUs" {
    spec packed 0 2
    study 'srun ./task.sh' -n 1 --gpus-per-task=1
    found 2 worker 0 2 0 1
    found 2 worker 1 1 1 0
    as_planned 2 2xworker:1:1
}

@test "packed, two roles: on each node the worker is at its GPU, the server at the network or what is left" {
    machine apart >'machines/h[1-4].xml'
    spec packed 2 2
    sed -i 's/"worker_nodes": {"choices": \[1\]}/"worker_nodes": {"choices": [2]}/' spec.json
    # what many scripts set, for an srun that does not look at the job's
    study 'export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; srun ./task.sh' -n 3 --gpus-per-task=1
    as_planned 2 ps:1,worker:1:1
    found 2 ps 0 2 - 1
    found 2 worker 0 1 0 0
    found 2 ps 1 2 - 1
    found 2 worker 1 1 0 0
    # whose network is where the worker's GPU is
    : >seen
    machine >'machines/h[1-4].xml'
    spec packed 1 1
    study 'srun ./task.sh' -n 3 --gpus-per-task=1
    as_planned 2 ps:1,worker:1:1
    found 2 ps 0 1 - 0
    found 2 worker 0 2 0 1
    # Slurm's steps have what each was given, where the user binds
    : >seen
    study 'srun --cpu-bind=cores ./task.sh' -n 3 --gpus-per-task=1
    [ "$(grep '^2 ' seen | cut -d' ' -f5 | sort | xargs)" = "1 2" ]
    grep -q '^2 worker .* 0 -$' seen
}

@test "steps: workers at their GPUs, in the tuning job's own allocation" {
    spec steps 0 2
    study 'srun ./task.sh' -N 2 --ntasks-per-node=2 --gpus-per-task=1
    found 1 worker 0 2 0 1
    found 1 worker 1 1 1 0
    as_planned 1 2xworker:1:1
}

# Slurm chooses the one CPU of the node with one worker.
@test "steps, two workers on one node and one on the other: each pair of tasks as planned" {
    spec steps 0 3
    sed -i 's/"worker_nodes": {"choices": \[1\]}/"worker_nodes": {"choices": [2]}/' spec.json
    study 'srun ./task.sh' -N 2 --ntasks-per-node=2 --gpus-per-task=1
    [ "$(grep -c '^1 worker . h. . 0 .$' seen)" = 2 ]
    pair=$(cut -d' ' -f4 seen | sort | uniq -d)
    sed -i "/ $pair /!d" seen
    as_planned 1 2xworker:1:1
    # all seen by all: of the step, not of the node
    : >seen
    study 'srun ./task.sh' -N 2 --ntasks-per-node=2 --gpus-per-node=2
    [ "$(grep -c '^1 worker . h. . 0,1 .$' seen)" = 2 ]
    [ "$(grep -c '^1 worker . h. . 0 .$' seen)" = 1 ]
}

@test "all GPUs seen by all: CPUs at the GPU of the local rank" {
    spec packed 0 2
    study 'srun ./task.sh' -n 2 --gpus-per-node=2
    found 2 worker 0 2 0,1 1
    found 2 worker 1 1 0,1 0
}

@test "who binds for himself, or wants no binding, has Slurm's" {
    spec packed 0 2 ', "bind": "none"'
    study 'srun ./task.sh' -n 1 --gpus-per-task=1
    found 2 worker 0 1 0 -
    found 2 worker 1 2 1 -
    rm seen
    spec packed 0 2
    study 'srun --cpu-bind=map_cpu:1,0 ./task.sh' -n 1 --gpus-per-task=1
    found 2 worker 0 2 0 -
    found 2 worker 1 1 1 -
}

@test "the order of ranks over the nodes is the user's, in the job as submitted as in others" {
    spec packed 0 4
    sed -i 's/"worker_nodes": {"choices": \[1\]}/"worker_nodes": [2]/' spec.json
    study 'srun ./task.sh' -N 2 -n 2 -m cyclic
    first=$(awk '$1 == 2 && $3 == 0 { print $4 }' seen)
    [ "$(awk -v n="$first" '$1 == 2 && $4 == n { print $3 }' seen | xargs)" = "0 2" ]
    : >seen
    sed -i 's/"workers": {"choices": \[4\]}/"workers": [2]/' spec.json
    study 'srun ./task.sh' -N 2 -n 4 -m cyclic
    first=$(awk '$1 == 1 && $3 == 0 { print $4 }' seen)
    [ "$(awk -v n="$first" '$1 == 1 && $4 == n { print $3 }' seen | xargs)" = "0 2" ]
}

@test "a topology that does not fit: one line, and Slurm's binding" {
    machine | sed 's/0x1"/0x100"/g; s/0x3"/0x102"/g; s/os_index="0" cpuset="0x100"/os_index="8" cpuset="0x100"/' >'machines/h[1-4].xml'
    spec packed 0 2
    study 'srun ./task.sh' -n 1 --gpus-per-task=1
    found 2 worker 0 1 0 -
    found 2 worker 1 2 1 -
    [ "$(grep -c 'tasks are not bound to CPUs: ' "dt-tune-$job/trials/0002/output.log")" = 1 ]
}

@test "dt-tune topo --gather asks a node of every kind, and --node shows what it said" {
    export XDG_CACHE_HOME=$PWD/cache
    dt-tune topo --gather
    machines=(cache/dt-tune/topology/*)
    [ ${#machines[@]} = 1 ]
    dt-tune topo --node=h3 | grep -q "^  NUMA node 0, .* CPUs 0"
    dt-tune topo --machine="${machines[0]}" --plan=worker:1 | grep -qx 'worker: CPUs 0 (0x1)'
    # it is what a study finds by Slurm's description of the nodes: one GPU has a quarter of the memory near it
    machine | sed '0,/local_memory="1/s//local_memory="3/' >"${machines[0]}"
    echo '{"dt": {"workers": {"choices": [1, 2]}, "worker_mem": "auto"}, "layout": "packed"}' >spec.json
    printf '#!/bin/bash\nsrun true\n' >train.sh
    sbatch --dt-tune=spec.json --dt-dry-run -n 1 --gpus-per-task=1 train.sh >dry
    tr -s ' ' <dry | grep -qx ' worker_mem 265, 530, 1060'
    scontrol update nodename=h[1-4] state=drain reason=test
    run dt-tune topo --gather --node=h1
    scontrol update nodename=h[1-4] state=resume
    idle() { [ "$(sinfo -h -p main -o %t)" = idle ]; }
    wait_for 60 idle
    [ "$status" = 1 ]
    [[ $output == *"h1: none of these nodes is up"* ]]
}

@test "a trial with all GPUs of a node of a new kind keeps what that is made of, for later ones" {
    export XDG_CACHE_HOME=$PWD/cache HWLOC_XMLFILE=$PWD/machine.xml
    local until_known='until [ -e cache/dt-tune/topology/*.xml ]; do sleep 0.1; done'
    machine >machine.xml
    spec packed 0 1
    sed -i 's/"placement": {[^}]*}, //' spec.json
    study 'srun ./task.sh' -n 1 --gpus-per-task=1
    [ ! -e cache ]
    : >seen
    sed -i 's/"workers": {"choices": \[1\]}/"workers": {"choices": [2]}/' spec.json
    study "srun ./task.sh; $until_known" -n 2 --gpus-per-task=1
    unset HWLOC_XMLFILE
    dt-tune topo --node=h2 | grep -q '^    GPU 0: 0000:10:00.0'
    # later trials are not asked any more
    grep -q '"learn":true' "dt-tune-$job/trials/0001/job.sh"
    run ! grep -q '"learn"' "dt-tune-$job/trials/0002/job.sh"
}

@test "sizes that are left to the nodes come from their topology, and stay the study's" {
    cat >spec.json <<END
{ "dt": {"workers": {"choices": [1, 2]}, "worker_cpus": "auto", "worker_gpus": "auto"},
  "placement": {"topology": "$PWD/machines"}, "layout": "packed" }
END
    printf '#!/bin/bash\nsrun true\n' >train.sh
    sbatch --dt-tune=spec.json --dt-dry-run -n 1 --gpus-per-task=1 train.sh >dry
    grep -qE '^ *worker_cpus +1$' dry
    grep -qE '^ *worker_gpus +1$' dry
    sed -i 's/"worker_gpus": "auto"/"ps_gpus": "auto"/' spec.json
    run sbatch --dt-tune=spec.json -n 1 --gpus-per-task=1 train.sh
    [ "$status" -ne 0 ]
    [[ $output == *'spec.json:1: dt.ps_gpus: only worker_gpus, worker_cpus, worker_mem and worker_nodes can be "auto"'* ]]
}
