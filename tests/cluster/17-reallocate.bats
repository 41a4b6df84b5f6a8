#!/usr/bin/env bats
# Re-allocation on a real Slurm: a saturated server, checkpoint, a new run in the new shape; and programs that are not up
# to it.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 8 --cpus 8:2 # of the feature fast, and slow
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    work=$(mktemp -d "$BATS_TEST_TMPDIR/reallocate.XXXXXX")
    cd "$work" || return
}

teardown() {
    scancel -u "$(id -un)" 2>/dev/null || true
}

# So that a busy role counts as saturated however busy this machine is with other things, and an idle one as idle.
low='"high": 4, "low": 2, "high_samples": 2, "low_samples": 4'

servers='{"low": 1, "high": 2}'

# start REALLOCATE CHECKPOINT: submits a study of one trial, one server and two workers at first; its script is standard
# input. The arguments are keys of these sections; mem, layout, rule, here, ps, budget and constraint may be set.
start() {
    cat >spec.json <<END
{"dt": {"ps": ${ps:-$servers}, "workers": [2]${budget:+, $budget}}, "layout": "${layout:-packed}", "monitor": {"period_s": 0.5},
 "reallocate": {"rule": "${rule:-thresholds}", $low${1:+, $1}}, "checkpoint": {${2-}},
 "search": {"max_configs": 1, "repeats": 0}}
END
    { printf '#!/bin/bash\n#SBATCH --ntasks=3 --mem-per-cpu=%s --job-name=t -t 20%s\n' "${mem:-100M}" "${constraint:+ -C $constraint}" && cat; } >train.sh
    if [ -n "${here-}" ]; then # pid is the tuner's
        dt-sbatch --here --dt-tune=spec.json train.sh >here.out 2>&1 3>&- &
        pid=$!
        wait_for 60 eval 'dir=$(sed -nE "s/^dt-tune .* records in //p" here.out) && [ -n "$dir" ]'
        return
    fi
    job=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$job
}

# finished SECONDS: the study has ended well.
finished() {
    wait_for "$1" job_ended "$job"
    cat "slurm-$job.out"
    [ "$(job_state "$job")" = COMPLETED ]
}

# events KIND: how many of them are in the journal.
events() {
    grep -c "\"event\":\"$1\"" "$dir/journal.jsonl" || true
}

@test "a saturated server: one re-allocation, and the training goes on where it was" {
    has_servers /usr/bin/python3 || skip "no PyTorch with RPC, or no scikit-learn"
    cp "$BATS_TEST_DIRNAME"/../../etc/examples/*.py .
    # the first run has no end of its own, the second trains for some epochs more
    cat >epochs.py <<'END'
import json, os
run = int(os.environ["DT_RESTARTS"]) + 1
last = 1e6
if run > 1:
    with open("%s/metrics-%d.jsonl" % (os.environ["DT_TRIAL_DIR"], run - 1)) as f:
        last = json.loads(f.readlines()[-1])["epoch"] + 5
print(int(last))
END
    mem=800M start "" "" <<'END'
E=$(/usr/bin/python3 epochs.py)
exec srun /usr/bin/python3 ps_train.py --mode sync --epochs $E
END
    finished 300
    [ "$(events reallocating)" = 1 ]
    grep -E '^ +1 re-allocation: ps=1 workers=2 -> ps=2 workers=2: servers saturated \([0-9]+ %\)' "slurm-$job.out"
    grep -E '^ +1 run 1 wrote its checkpoint and ended after [0-9.]+ s: goes on with ps=2 workers=2' "slurm-$job.out"
    # steps are monotone, none is trained twice, none is left out; the loss goes on
    /usr/bin/python3 - "$dir/trials/0001" <<'END'
import json, re, sys
read = lambda name: [json.loads(line) for line in open("%s/%s.jsonl" % (sys.argv[1], name))]
one, two = read("metrics-1"), read("metrics")
steps = [m["step"] for m in one + two]
assert steps == sorted(steps), steps
log = open(sys.argv[1] + "/output.log").read()
stopped = re.search(r"stopped at step (\d+), checkpoint written", log).group(1)
assert re.search(r"resumed at step (\d+)", log).group(1) == stopped
assert one[-1]["step"] <= int(stopped) < two[0]["step"], (one[-1], stopped, two[0])
loss = [m["loss"] for m in one + two]
at = len(one)
spread = max(loss[at - 10:at]) - min(loss[at - 10:at])
assert loss[at] <= max(loss[max(at - 10, 0):at]) + spread + 0.05, loss[at - 10:at + 3]
END
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
t = json.load(sys.stdin)["trials"][0]
p = t["parts"][0]
assert t["runs"] == 2 and t["status"] == "ok" and t["config"]["ps"] == 2, t
assert p["config"]["ps"] == 1 and p["reallocated"] and p["pace_s"] > 0 and p["value"] > 0, p'
    [ "$(dt-tune report "$dir" | grep -c '| run 1 on ps=1 workers=2: ')" = 1 ]
}

# A program whose server is busy until `released`, and that reports one step a line; what it does when it is asked for a
# checkpoint is its argument.
program() {
    cat >program.py <<'END'
import json, os, signal, sys, time
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
what, server = sys.argv[1], os.environ["DT_ROLE"] == "ps"
first = os.environ["DT_ROLE_RANK"] == "0" and not server
saved = os.environ["DT_CHECKPOINT_DIR"] + "/saved"
if server:
    with open("server-nodes", "a") as f:
        f.write(os.environ["SLURMD_NODENAME"] + "\n")
step = 0
if os.path.exists(saved):
    text = open(saved).read()
    if not text.isdigit():
        sys.exit("the checkpoint is corrupt")
    step = int(text)
def save(text):
    if first:
        with open(saved + ".part", "w") as f:
            f.write(text)
        os.rename(saved + ".part", saved)
    # whoever ends first ends them all
    while not os.path.exists(saved):
        time.sleep(0.1)
# Slurm tells all processes and dt-launch tells its program: os._exit(), as the second word would kill a Python that ends.
def answer():
    if what == "saves":
        save(str(step))
        os._exit(143)
    if what == "stays":
        save(str(step))
    if what == "cancelled": # by the test
        open("asked", "w").close()
        while not os.path.exists("save"):
            time.sleep(0.1)
        save(str(step))
        time.sleep(1000)
    if what == "lies":
        save("nonsense")
        os._exit(143)
    if what == "quits":
        os._exit(0)
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "late" and not server:
        while not os.path.exists("late"):
            time.sleep(0.1)
        save(str(step))
        os._exit(143)
# the first reports when all of them would live through the question
ready = "%(DT_TRIAL_DIR)s/ready-%(DT_RESTARTS)s-" % os.environ
open(ready + os.environ["RANK"], "w").close()
while first and any(not os.path.exists(ready + str(i)) for i in range(int(os.environ["WORLD_SIZE"]))):
    time.sleep(0.05)
while not os.path.exists("released"):
    if asked and what != "ignores":
        asked.clear()
        answer()
    if server:
        sum(range(300000))
        time.sleep(0.001)
        continue
    step += 1
    if first:
        with open(os.environ["DT_METRICS_FILE"], "a") as f:
            f.write(json.dumps({"step": step, "time": time.time()}) + "\n")
    time.sleep(0.3)
END
    start "${2-}" "\"grace_s\": ${3:-60}" <<END
exec srun /usr/bin/python3 program.py $1
END
}

# has PATTERN: the study's output by now.
has() {
    grep -qsE "$1" "slurm-$job.out"
}

saves() {
    layout=het program saves
    wait_for 120 has 'run 1 wrote its checkpoint and ended after .* goes on with ps=2 workers=2 layout=het'
    goes_on
    touch released
    finished 120
    [ "$(events reallocating)" = 1 ]
    [ "$(events ended)" = 2 ]
    cat "$dir"/trials/0001/metrics-1.jsonl "$dir/trials/0001/metrics.jsonl" | /usr/bin/python3 -c '
import json, sys
steps = [json.loads(line)["step"] for line in sys.stdin]
assert steps == list(range(1, len(steps) + 1)), steps'
    # the history knows both configurations
    dt-tune history --show="$dir" --format=json | /usr/bin/python3 -c '
import json, sys
o = json.load(sys.stdin)["observations"]
assert [x["config"]["ps"] for x in o] == [2, 1] and all(x["value"] > 0 for x in o), o'
    has 'run 1 on ps=1 workers=2: 1 to [0-9]+ by its own count, 0\.[0-9]+ s a step, in all it would have come to [0-9.]+ s'
}

has_steps() { # N: the second run has reported so many
    local f=$dir/trials/0001
    [ -e "$f/metrics-1.jsonl" ] && [ -e "$f/metrics.jsonl" ] && [ "$(wc -l <"$f/metrics.jsonl")" -ge "$1" ]
}

goes_on() {
    wait_for 120 has_steps 2 || {
        cat "$dir"/../*.out "$dir"/trials/0001/output.log
        squeue
        squeue -s
        return 1
    }
}

# By the law of work, once what it saves is more than what it costs.
models() {
    rule=model program saves
    wait_for 120 has 're-allocation: ps=1 workers=2 -> ps=2 workers=2: .* s a step here, .* s expected there: saves .* s of the .* s left, a restart costs [0-9.]+ s'
    goes_on
    touch released
    finished 120
    [ "$(events reallocating)" = 1 ]
}

# It has saved, but goes on: it is ended.
stays() {
    program stays
    wait_for 120 has 'run 1 wrote its checkpoint and ended after .* goes on with ps=2 workers=2'
    goes_on
    touch released
    finished 120
    [ "$(events checkpointed)" = 1 ]
}

ignores() {
    program ignores "" 3
    wait_for 120 has '1 goes on as it is: no checkpoint within 3 s; nothing is re-allocated any more'
    touch released
    finished 120
    [ "$(events ended)" = 1 ]
    has '^ +1 .* ps=1 workers=2'
}

late() {
    program late "" 3
    wait_for 120 has '1 goes on as it is: no checkpoint within 3 s'
    touch late
    wait_for 120 has 'run 1 wrote its checkpoint .* goes on with ps=2 workers=2'
    goes_on
    touch released
    finished 120
}

lies() {
    program lies
    wait_for 120 job_ended "$job"
    cat "slurm-$job.out"
    has 'run 1 wrote its checkpoint .* goes on with ps=2 workers=2'
    has '^ +1 .* ps=2 workers=2 .*exit code 1'
    has 'the checkpoint is corrupt'
}

# By a user, when it has just written its checkpoint: before the tuner, which is held, can end it.
cancelled() {
    local tuner trial
    program cancelled "" 600
    wait_for 120 test -e asked
    tuner=$(pgrep -of "dt-tune run --carrier $DT_CLUSTER_DIR/.*/job0*$job/slurm_script")
    trial=$(sed -nE 's/.*"event":"submitted".*"job":([0-9]+).*/\1/p' "$dir/journal.jsonl")
    kill -STOP "$tuner"
    touch save
    wait_for 60 test -e "$dir/trials/0001/checkpoint/saved"
    scancel "$trial"
    wait_for 120 job_ended "$trial"
    kill -CONT "$tuner"
    wait_for 120 job_ended "$job"
    cat "slurm-$job.out"
    has '^ +1 .* ps=1 workers=2 .*ended: cancelled'
    [ "$(events reallocating)" = 1 ]
    [ "$(events checkpointed)" = 1 ]
    [ "$(events submitted)" = 1 ]
}

quits() {
    program quits
    wait_for 120 has 'run 1 ended without a checkpoint: it is repeated as it was; nothing is re-allocated any more'
    goes_on
    touch released
    finished 120
    [ "$(events reallocating)" = 1 ]
    has '^ +1 .* ps=1 workers=2'
}

dies() {
    program dies
    wait_for 120 has 'run 1 ended without a checkpoint: it is repeated as it was'
    goes_on
    touch released
    finished 120
    [ "$(events reallocating)" = 1 ]
}

@test "a checkpoint that is written, one beside which the program goes on, and none at all" {
    at_once saves models
    at_once stays ignores
}

@test "a checkpoint that comes late, a corrupt one, and programs that end without one" {
    at_once late lies cancelled
    at_once quits dies
}

node_cpus() {
    scontrol -o show node "$1" | sed -nE 's/.*CPUTot=([0-9]+).*/\1/p'
}

@test "where there may be no more servers, a node that has more CPUs for one" {
    wait_for 60 no_jobs # or the small nodes may still be the last test's
    ps='[1]' budget='"ps_cpus": [1, 4]' layout=het program saves
    wait_for 120 has 'run 1 wrote its checkpoint .* goes on with ps=1 workers=2 ps_cpus=4'
    goes_on
    touch released
    finished 120
    has '1 re-allocation: ps=1 workers=2 ps_cpus=1 -> ps=1 workers=2 ps_cpus=4 layout=het: servers saturated'
    mapfile -t nodes <server-nodes
    [ "$(node_cpus "${nodes[0]}")" = 2 ] && [ "$(node_cpus "${nodes[1]}")" = 8 ]
}

moves() {
    ps='[1]' budget='"ps_constraint": ["slow", "fast"], "worker_constraint": ["slow"]' constraint=slow layout=het program saves
    wait_for 120 has 'run 1 wrote its checkpoint and ended after .* goes on with ps=1 workers=2 ps_constraint=fast'
    goes_on
    touch released
    finished 120
    [ "$(events reallocating)" = 1 ]
    has 'ps: CPU [0-9]+ % over 2 samples, moves from slow \(2 CPUs a node\) to fast \(8 CPUs a node\)'
    mapfile -t nodes <server-nodes
    [ "$(node_cpus "${nodes[1]}")" -gt "$(node_cpus "${nodes[0]}")" ]
    grep -qx '#SBATCH --constraint=fast' "$dir/trials/0001/job.sh"
    grep -qx '#SBATCH --constraint=slow' "$dir/trials/0001/job.sh"
}

# A study that moves nothing, and one over names that do not exist.
searches() {
    printf '#!/bin/bash\n#SBATCH -n 1 -t 5 --mem-per-cpu=100M\nscontrol -o show node "$SLURMD_NODENAME" >node-$DT_TRIAL\n' >train.sh
    cat >spec.json <<'END'
{"dt": {"workers": [1], "worker_cpus": [1, 4], "worker_constraint": ["slow", "fast", "fast&slow"], "partition": ["main", "short"]},
 "search": {"algorithm": "grid", "max_configs": 8, "repeats": 0}}
END
    job=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$job
    finished 240
    has '^ +4 excluded: worker_constraint: no node of the partition that is up has these features'
    dt-tune report "$dir" --format json >report.json
    /usr/bin/python3 - <<'END'
import json, re
trials = json.load(open("report.json"))["trials"]
seen = set()
for t in trials:
    c = t["config"]
    assert t["status"] == "ok", t
    if c["worker_constraint"] is None:
        continue
    node = open("node-%d" % t["trial"]).read()
    assert re.search("ActiveFeatures=%s " % c["worker_constraint"], node), (c, node)
    seen.add((c["worker_cpus"], c["worker_constraint"], c["partition"]))
assert seen == {(n, f, p) for n in (1, 4) for f in ("slow", "fast") for p in ("main", "short")
                if (n, f) != (4, "slow")}, seen
END
    grep -qx '#SBATCH --partition=short' "$dir"/trials/*/job.sh
    sed 's/"fast&slow"/"fats"/' spec.json >wrong.json
    run -2 dt-sbatch --dt-dry-run --dt-tune=wrong.json train.sh
    [[ $output == *'wrong.json:1: dt.worker_constraint: no node has the feature "fats"; there are: fast,slow'* ]]
}

@test "a busy role moves to nodes of another kind, and kinds of nodes are searched" {
    at_once moves searches
}

# goes_on_with_fewer PS LAYOUT TRIAL NODES: a training whose four workers are idle, each on a node of its own. It is the
# job as submitted, or the trial after that, which is soon over then.
goes_on_with_fewer() {
    cat >spec.json <<END
{"dt": {"ps": [$1], "workers": [2, 4]}, "layout": "$2", "monitor": {"period_s": 0.5},
 "reallocate": {"rule": "thresholds", $low, "in_place": true},
 "search": {"algorithm": "random", "max_configs": $3, "repeats": 0}}
END
    cat >idle.py <<'END'
import os, sys, time
trial, step = sys.argv[1], 0
while os.environ["DT_TRIAL"] == trial and (os.environ["DT_ROLE"] == "ps" or not os.path.exists("released")):
    time.sleep(0.3)
    step += 1
    if os.environ["DT_ROLE"] + os.environ["DT_ROLE_RANK"] == "worker0":
        with open(os.environ["DT_METRICS_FILE"], "a") as f:
            f.write('{"step": %d, "time": %f}\n' % (step, time.time()))
END
    printf '#!/bin/bash\n#SBATCH -n %s --ntasks-per-node=1 --mem-per-cpu=100M --job-name=t -t 20\nsrun /usr/bin/python3 idle.py %s\n' \
        "$((3 * $3 + 1))" "$3" >train.sh
    job=$(sbatch --parsable --dt-tune=spec.json train.sh)
    dir=$PWD/dt-tune-$job
    wait_for 120 has "$3 re-allocation in place: .*workers=4.* -> .*workers=2.*: .*workers idle"
    wait_for 120 grep -q "\"event\":\"allocated\",\"trial\":$3.*\"nodes\":$4" "$dir/journal.jsonl"
    [ "$(ls "$dir/trials/000$3/left-1")" = $'worker-2\nworker-3' ]
    lines=$(wc -l <"$dir/trials/000$3/metrics.jsonl")
    more_lines() { [ "$(wc -l <"$dir/trials/000$3/metrics.jsonl")" -gt $((lines + 3)) ]; }
    wait_for 60 more_lines "$@" # the others go on
    touch released
    finished 120
    [ "$(events submitted)" = "$3" ]
    [ "$(events ended)" = "$3" ]
    dt-tune report "$dir" --format json | /usr/bin/python3 -c '
import json, sys
t = json.load(sys.stdin)["trials"][-1]
assert t["status"] == "ok" and t["runs"] == 1 and t["config"]["workers"] == 2, t
assert t["parts"][0]["config"]["workers"] == 4 and t["parts"][0]["pace_s"] > 0, t'
}

plain() {
    goes_on_with_fewer 0 packed 1 2
}

components() {
    goes_on_with_fewer 1 het 2 3
}

@test "where the program can do without its last workers it goes on in place, and their nodes go back" {
    at_once components
    at_once plain
}

@test "a tuner that is killed while it waits finds what came of it" {
    here=1 program late "" 600
    wait_for 120 grep -q '"event":"reallocating"' "$dir/journal.jsonl"
    kill -KILL "$pid"
    touch late
    dt-sbatch --here --dt-tune --dt-resume="$dir" "$dir/script" >resumed.out 2>&1 3>&- &
    goes_on
    touch released
    wait $!
    cat resumed.out
    [ "$(events reallocating)" = 1 ]
    grep -E '1 run 1 wrote its checkpoint .* goes on with ps=2 workers=2' resumed.out
}
