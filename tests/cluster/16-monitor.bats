#!/usr/bin/env bats
# What the roles of a running trial use, seen from outside on a real Slurm: busy and idle ones, memory, GPUs; a tuner
# that is killed; no monitor.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 8 --cpus 8 --gpus 2
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    work=$(mktemp -d "$BATS_TEST_TMPDIR/monitor.XXXXXX")
    cd "$work"
}

teardown() {
    scancel -u "$(id -un)" 2>/dev/null || true
}

# start MONITOR [OPTION...]: submits a study of one trial, one server and two workers, with this section "monitor"; its
# script is standard input.
start() {
    cat >spec.json <<END
{"dt": {"ps": [1], "workers": [2]}, "layout": "${layout:-auto}", "monitor": $1, "search": {"max_configs": 1, "repeats": 0}}
END
    { printf '#!/bin/bash\n#SBATCH --ntasks=3 --mem-per-cpu=200M --job-name=t\n' && cat; } >train.sh
    job=$(sbatch --parsable --dt-tune=spec.json "${@:2}" train.sh)
    dir=$PWD/dt-tune-$job
}

# A task that does nothing but wait for `released`.
idle='until [ -e released ]; do sleep 0.3; done'

finished() {
    touch released
    wait_for 120 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ] || {
        cat "slurm-$job.out"
        return 1
    }
}

# usage ROLE EXPRESSION: the expression is true of v, what the journal was told of the role ({"t": ..., "samples": ...,
# "levels": ...} each), of mean(RESOURCE) and most(RESOURCE), and of what program.py says of itself: share(FROM, TO), of one
# CPU, that it got then, and error(PERIOD), how far from that are the samples that follow on each other.
usage() {
    /usr/bin/python3 - "$dir/journal.jsonl" "$@" <<'END'
import json, os, sys
path, role, expression = sys.argv[1:]
v = []
for line in open(path) if os.path.exists(path) else []:
    r = json.loads(line) if line.endswith("\n") else {}
    if r.get("event") == "usage" and r["text"] == role:
        v.append({"t": r["t"], "samples": r.get("samples", 1), "levels": r["levels"]})
samples = sum(r["samples"] for r in v)
known = lambda x: [(r["samples"], *r["levels"][x]) for r in v if x in r["levels"]] # of memory, not where a task is ending
mean = lambda x: sum(n * m for n, m, _ in known(x)) / sum(n for n, _, _ in known(x))
most = lambda x: max(m for _, _, m in known(x))
trace = [line.split() for line in open("trace") if line.endswith("\n")] if os.path.exists("trace") else []
trace = [(float(t), float(ran)) for t, ran in trace]
def ran(t): # CPU time until then
    before, after = [p for p in trace if p[0] <= t], [p for p in trace if p[0] > t]
    if not before or not after:
        return before[-1][1] if before else 0
    (a, x), (b, y) = before[-1], after[0]
    return x + (y - x) * (t - a) / (b - a)
share = lambda a, b: (ran(b) - ran(a)) / (b - a)
def error(period):
    parts = [(a["t"], b["t"], b["levels"]["cpu"][0]) for a, b in zip(v, v[1:])
             if "cpu" in b["levels"] and b["t"] - a["t"] < (b["samples"] + 0.5) * period]
    span = sum(b - a for a, b, _ in parts)
    return abs(sum((b - a) * (cpu - share(a, b)) for a, b, cpu in parts)) / span if span > 5 * period else 1
if not (v and eval(expression)):
    sys.exit("%s: %s is not so; samples %d, the last: %s" % (role, expression, samples, v[-2:]))
END
}

# The journal has each period of the folder once, but for some that came too late to count.
nothing_is_lost_or_twice() { # ROLE PERIOD
    local periods
    periods=$(cat "$dir"/trials/0001/usage/1/*.jsonl | /usr/bin/python3 -c '
import json, math, sys
samples = [r for r in map(json.loads, sys.stdin) if r["role"] == sys.argv[1]]
print(len({math.floor(r["time"] / float(sys.argv[2])) for r in samples}))' "$@")
    usage "$1" "0.7 * $periods <= samples <= $periods"
}

# A server that is busy, and writes down how much it ran, and workers that hold memory.
program() {
    cat >program.py <<'END'
import os, time
held = bytearray(100 << 20) if os.environ.get("DT_ROLE") != "ps" else None
trace, due = None if held else open("trace", "a"), 0
while not os.path.exists("released"):
    if held:
        time.sleep(0.1)
        continue
    sum(range(100000))
    if time.monotonic() >= due:
        ran = time.process_time()
        trace.write("%f %f\n" % (time.time(), ran))
        trace.flush()
        due = time.monotonic() + 0.05
END
}

@test "a busy role is seen as busy, an idle one as idle, and the report tells both" {
    program
    start '{"period_s": 0.2}' <<<'srun /usr/bin/python3 program.py'
    wait_for 120 usage ps 'samples >= 20 and error(0.2) < 0.15'
    wait_for 120 usage worker 'samples >= 20 and mean("cpu") < 0.3 * share(v[0]["t"], v[-1]["t"])'
    finished
    usage ps 'most("cpu") <= 1'
    nothing_is_lost_or_twice ps 0.2
    nothing_is_lost_or_twice worker 0.2
    # a file for each node, from both workers one line in a period
    [ "$(cat "$dir"/trials/0001/usage/1/*.jsonl | grep -c '"role":"worker","rank":1')" -ge 5 ]
    dt-tune report "$dir" | tee report | grep -E '^ +trial 1 \(as submitted\) +ps +CPU +[0-9]+ % \( *[0-9]+ %\)  memory'
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
u = json.load(sys.stdin)["trials"][0]["usage"]
assert u["ps"]["cpu"][0] > u["worker"]["cpu"][0] and u["ps"]["samples"] >= 20, u
assert "disk" in u["ps"] and "gpu" not in u["ps"], u'
}

@test "memory is seen to rise" {
    start '{"period_s": 0.2}' <<END
srun bash -c 'if [ \$DT_ROLE\$DT_ROLE_RANK = worker1 ]; then exec /usr/bin/python3 fill.py; fi; $idle'
END
    cat >fill.py <<'END'
import os, time
held = []
while not os.path.exists("released"):
    if os.path.exists("more") and not held:
        held.append(bytearray(120 << 20))
    time.sleep(0.1)
END
    wait_for 60 usage worker 'samples >= 3 and v[-1]["levels"]["mem"][1] < 0.3'
    touch more
    wait_for 60 usage worker 'v[-1]["levels"]["mem"][1] > 0.6 and v[-1]["levels"]["mem"][0] < 0.5'
    finished
    usage ps 'most("mem") < 0.3'
}

# Ends the tuner's own process as a crash would.
kill_tuner() {
    local pid
    pid=$(pgrep -of "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")
    kill -KILL "$pid"
    wait_for 120 job_ended "$job"
}

@test "a tuner that is killed and goes on counts nothing twice" {
    start '{"period_s": 0.2}' <<END
srun bash -c '$idle'
END
    wait_for 60 usage worker 'samples >= 6'
    kill_tuner
    job=$(sbatch --parsable --dt-tune --dt-resume="$dir" train.sh)
    wait_for 60 grep -q '"event":"resumed"' "$dir/journal.jsonl"
    finished
    nothing_is_lost_or_twice ps 0.2
    nothing_is_lost_or_twice worker 0.2
    [ "$(ls "$dir/trials/0001/usage")" = 1 ]
}

@test "without a monitor there is no file, no process and no event" {
    start false <<END
srun bash -c '$idle'
END
    wait_for 60 test -e "$dir/trials/0001/worker-1.log"
    only_tasks() { [ "$(pgrep -fc "^[^ ]*dt-launch --task [a-z]+ .*$dir/trials/0001")" = 3 ]; }
    wait_for 60 only_tasks
    finished
    [ ! -e "$dir/trials/0001/usage" ]
    run -1 grep -q '"event":"usage"' "$dir/journal.jsonl"
    run -1 grep -q "what a role's tasks used" "slurm-$job.out"
}

gathered() {
    program
    layout=het start '{"source": "slurm", "period_s": 1}' <<<'srun /usr/bin/python3 program.py'
    # an answer that does not come makes the next question a later one; there are 30 s between two
    wait_for 300 usage ps 'abs(v[-1]["levels"]["cpu"][0] - share(v[-1]["t"] - 30, v[-1]["t"])) < 0.2 and mean("mem") < 0.3'
    wait_for 60 usage worker 'mean("cpu") < 0.2 and 0.35 < mean("mem") < 0.65'
    [ ! -e "$dir/trials/0001/usage" ]
    [ "$(pgrep -fc "^[^ ]*dt-launch --task [a-z]+ .*$dir/trials/0001")" = 3 ] # no sampler
    finished
}

sampled() {
    program
    start '{"source": "agent", "period_s": 0.5}' <<<'srun /usr/bin/python3 program.py'
    wait_for 180 usage ps 'samples >= 10 and error(0.5) < 0.15 and mean("mem") < 0.3'
    wait_for 60 usage worker 'mean("cpu") < 0.2 and 0.35 < mean("mem") < 0.65'
    finished
}

# Nothing is started by srun or dt-launch, so there is no sampler; the work is the batch step's.
alone() {
    cat >spec.json <<END
{"dt": {"ps": [0], "workers": [1]}, "monitor": {"period_s": 1}, "search": {"max_configs": 1, "repeats": 0}}
END
    printf '#!/bin/bash\n#SBATCH -n 1 --mem-per-cpu=200M\nDT_ROLE=ps /usr/bin/python3 program.py\n' >train.sh
    program
    job=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$job
    wait_for 180 usage worker "mean('cpu') > 0.1"
    finished
}

@test "what Slurm gathers of the steps says the same, also where no sampler can run" {
    at_once gathered sampled alone
}

@test "GPUs are seen by NVML, where it is" {
    [ "$(id -u)" = 0 ] || skip "CUDA_VISIBLE_DEVICES is set on real devices only"
    [ -e "$DT_BUILD/tests/unit/.libs/fake_nvml.so" ] || skip "made by make check"
    cp "$DT_BUILD/tests/unit/.libs/fake_nvml.so" libnvidia-ml.so.1
    cat >spec.json <<END
{"dt": {"workers": [1]}, "monitor": {"period_s": 0.2}, "search": {"max_configs": 1, "repeats": 0}}
END
    cat >train.sh <<END
#!/bin/bash
#SBATCH --ntasks=1 --mem-per-cpu=200M --job-name=t --gpus-per-task=2
export LD_LIBRARY_PATH=$PWD
srun bash -c '$idle'
END
    job=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$job
    wait_for 60 usage worker 'samples >= 5 and len(v) > 1'
    finished
    # the first is busier each time it is looked at, the second always for 40 %
    usage worker '0.2 < v[0]["levels"]["gpu"][0] < v[-1]["levels"]["gpu"][0] <= 1'
}
