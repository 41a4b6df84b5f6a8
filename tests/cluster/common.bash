# Helpers for bats files that need a private Slurm. Load it with `load common`.

# has_servers PYTHON: it has scikit-learn and a PyTorch with what parameter servers talk through, which Debian's of 2.14 is
# built without. Not by importing it, which takes seconds.
has_servers() {
    local torch
    torch=$("$1" -c 'import importlib.util as u
print(u.find_spec("sklearn") and u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) &&
        grep -qs _TensorPipeRpcBackendOptionsBase "$torch"/lib/libtorch_python.so
}

# For setup_file: starts a cluster with the plugins and tools of the build tree DT_BUILD (default:
# the top of the source tree) and makes it the one that Slurm's commands use. Arguments are those
# of `dt-cluster up`. Exports DT_BUILD, DT_CLUSTER_DIR, SLURM_CONF, PATH and DT_TUNE_HISTORY (the
# cluster's own). Where Slurm is not installed, or its slurmdbd and MariaDB do not agree, it only notes
# so, for need_cluster.
cluster_up() {
    local tool
    for tool in munged slurmctld slurmd; do
        if ! PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null; then
            export DT_CLUSTER_MISSING="$tool is not installed"
            return 0
        fi
    done
    DT_BUILD=$(cd "${DT_BUILD:-$BATS_TEST_DIRNAME/../..}" && pwd) || return 1
    export DT_BUILD
    DT_CLUSTER_DIR=$("$BATS_TEST_DIRNAME/dt-cluster" up --build "$DT_BUILD" "$@" 2>"$BATS_FILE_TMPDIR/up") || {
        cat "$BATS_FILE_TMPDIR/up" >&2
        # Slurm 24.11 and 26.05 with MariaDB 11.8.9
        grep -q 'fatal: _check_mysql_concat_is_sane' "$BATS_FILE_TMPDIR/up" || return 1
        export DT_CLUSTER_MISSING="this slurmdbd cannot use this MariaDB"
        return 0
    }
    eval "$("$BATS_TEST_DIRNAME/dt-cluster" env "$DT_CLUSTER_DIR")"
}

# For setup: skips the test where cluster_up found no Slurm. (bats 1.8 cannot skip in setup_file.)
# The test gets a history of its own, so that its studies do not learn from another test's.
need_cluster() {
    if [ -n "${DT_CLUSTER_MISSING-}" ]; then
        skip "$DT_CLUSTER_MISSING"
    fi
    export DT_TUNE_HISTORY=$BATS_TEST_TMPDIR/history
}

# A file with its own setup calls need_cluster there.
setup() {
    need_cluster
}

# For teardown_file: takes down what cluster_up started, if it did.
cluster_down() {
    if [ -n "${DT_CLUSTER_DIR-}" ]; then
        "$BATS_TEST_DIRNAME/dt-cluster" down "$DT_CLUSTER_DIR"
    fi
}

# What Slurm says where something never came: a node of a cluster may be the reason.
circumstances() {
    [ -n "${DT_CLUSTER_DIR-}" ] || return 0
    timeout 20 sinfo -N -o '%N %t %E'
    timeout 20 squeue -a
    timeout 20 squeue -s
    grep -hEi 'not respond|timed out|deadlock|fatal|drain|kill task' "$DT_CLUSTER_DIR"/log/*.log | tail -n 30
    return 0
} >&2

# wait_for SECONDS COMMAND...: runs COMMAND again and again until it succeeds; fails, and says what
# it waited for, if it does not within SECONDS.
wait_for() {
    local limit=$1 end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ $SECONDS -gt $end ]; then
            echo "not within $limit s: $*" >&2
            circumstances
            return 1
        fi
        sleep 0.1
    done
}

# For the program of a task: who has no servers any more ends them, so the workers wait until the server has come so far.
# shellcheck disable=SC2016,SC2034
together='case $DT_ROLE in
ps) touch "$DT_TRIAL_DIR/server" ;;
*) [ -z "$DT_PS_HOSTS" ] || until [ -e "$DT_TRIAL_DIR/server" ]; do sleep 0.05; done ;;
esac'

# Prints a job's state (PENDING, RUNNING, COMPLETED, ...), of a het job that of its first component;
# nothing if Slurm does not know the job.
job_state() {
    scontrol -o show job "$1" 2>/dev/null | sed -nE '1s/.* JobState=([A-Z_]+).*/\1/p'
}

# Succeeds once the job has ended, in whatever way; no answer is no end, nor is SIGNALING, which a job is for a moment
# when Slurm sends it a signal.
job_ended() {
    case $(job_state "$1") in
    BOOT_FAIL | CANCELLED | COMPLETED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED | TIMEOUT) ;;
    *) return 1 ;;
    esac
}

# Succeeds if Slurm says that no job is left, of those whose name holds $1; no answer is not "none".
no_jobs() {
    local names
    names=$(squeue -h -o %j | grep -F -e "${1-}"; exit "${PIPESTATUS[0]}") && [ -z "$names" ]
}

# node_of JOB: the node that its script is on.
node_of() {
    scontrol -o show job "$1" | sed -nE '1s/.* BatchHost=([^ ]+).*/\1/p'
}

# start_again JOB NODE: a requeued job may start now. Slurm lets it wait for two minutes, counted from when it has ended,
# which may be after it pends; for so long a slurmd remembers that it has killed the job, and refuses it: so it must not be
# on that node.
start_again() {
    scontrol update job "$1" StartTime=now ExcNodeList="$2"
}

# at_once FUNCTION...: runs the functions side by side, each in a folder of its own; all must succeed.
at_once() {
    local f pids=() failed=0
    for f; do
        (
            set -eE
            trap - DEBUG
            mkdir "$f"
            cd "$f"
            export DT_TUNE_HISTORY=$PWD/history
            trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
            "$f"
        ) >"$f.log" 2>&1 3>&- &
        pids+=($!)
    done
    for f; do
        wait "${pids[0]}" || {
            echo "$f failed:" && tail -n 90 "$f.log"
            failed=1
        }
        pids=("${pids[@]:1}")
    done
    return $failed
}
