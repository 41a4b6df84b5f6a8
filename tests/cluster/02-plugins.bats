#!/usr/bin/env bats
# The plugins in a real Slurm, with a stub in dt-tune's place.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    local built=${DT_BUILD:-$BATS_TEST_DIRNAME/../..}
    DT_BUILD=$BATS_FILE_TMPDIR/build
    mkdir -p "$DT_BUILD/.libs"
    cp "$built/.libs/spank_dt_tune.so" "$built/.libs/job_submit_dt_tune.so" "$DT_BUILD/.libs/" || skip "plugins are not built"
    write_stub "$DT_BUILD/dt-tune"
    cluster_up --gpus 2
    cp "$DT_CLUSTER_DIR/etc/plugstack.conf" "$DT_CLUSTER_DIR/etc/plugstack.orig"
}

teardown_file() {
    cluster_down
}

# A dt-tune that logs how it was called and behaves as $STUB says. As the tuner it runs $STUB_RUN.
write_stub() {
    cat >"$1" <<END
#!/bin/bash
stub=$1
END
    cat >>"$1" <<'END'
if [ "$1" = run ]; then
    echo "tuner: ${*:2:1} ${*:4}"
    eval "$STUB_RUN"
    exit 0
fi
if [ "$3" = --submit ]; then
    echo "$$ submits: $*"
    exit 5
fi
printf '%s\n' "$@" >>"$STUB_DIR/args"
echo >>"$STUB_DIR/calls"
fd=${3#--fd=}
study="{\"version\":1,\"exec\":\"$stub\",\"tuner\":{\"mem_mib\":64,\"time_min\":7},\"spec\":{}}"
case $STUB in
fail) echo "dt-tune: train.sh:4: no such thing" >&2; exit 2 ;;
code) exit 7 ;;
kill) kill -KILL $$ ;;
pipe) kill -PIPE $$ ;;
hang) exec sleep 300 ;;
deaf) exec {fd}>&-; exec sleep 300 ;;
dry) echo "dry run" ;;
apply) echo apply >&"$fd" ;;
big) head -c 70000 /dev/zero | tr '\0' x >&"$fd" ;;
two) printf 'a\nb\n' >&"$fd" ;;
old) echo '{"version":0}' >&"$fd" ;;
large) printf '%s\n' "${study%?},\"x\":\"$(head -c 65000 /dev/zero | tr '\0' x)\"}" >&"$fd" ;;
stdin) cat /proc/self/fd/0 >"$STUB_DIR/stdin"; echo "$study" >&"$fd" ;;
*) echo "$study" >&"$fd" ;;
esac
END
    chmod +x "$1"
}

setup() {
    export STUB= STUB_RUN= STUB_DIR=$BATS_TEST_TMPDIR
    cd "$BATS_TEST_TMPDIR"
    wait_for 60 eval '[ "$(queued)" = 0 ]' # what the test before left is cancelled, but may take a moment
    printf '#!/bin/bash\n#SBATCH --job-name=train\necho "hello $*"\n# end without newline' >train.sh
    other=
}

teardown() {
    scancel --me || true
    cp "$DT_CLUSTER_DIR/etc/plugstack.orig" "$DT_CLUSTER_DIR/etc/plugstack.conf"
    if [ -n "$other" ]; then
        "$BATS_TEST_DIRNAME/dt-cluster" down "$other"
    fi
}

queued() {
    squeue -h -t PD,R,CF,CG | wc -l
}

field() {
    scontrol -o show job "$1" | sed -nE "s,.* $2=([^ ]*).*,\1,p"
}

calls() {
    cat "$STUB_DIR/calls" 2>/dev/null | wc -l
}

# Fails unless job $1 is a tuning job.
is_tuning_job() {
    [ "$(field "$1" NumTasks)/$(field "$1" NumCPUs)/$(field "$1" MinMemoryNode)" = 1/1/64M ]
    [ "$(field "$1" Comment)" = dt-tune ]
    scontrol write batch_script "$1" - | grep -q '^#DT-TUNE-SCRIPT$'
}

# Fails unless job $1 was left alone.
is_ordinary_job() {
    [ "$(field "$1" Comment)" = "" ]
    ! scontrol write batch_script "$1" - | grep -q '^#DT-TUNE-SCRIPT$'
}

# Runs a command and fails unless it ends with status 1 and one line on stderr, which has $1 in
# it, prints nothing, and leaves nothing in the queue.
refused() {
    local text=$1
    shift
    run --separate-stderr "$@"
    echo "status $status, output: $output, stderr: $stderr"
    [ "$status" -eq 1 ]
    [ "$output" = "" ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"dt-tune: "*"$text"* ]]
    [ "$(queued)" = 0 ]
}

@test "the plugins export their entry points only and need libc only" {
    run bash -c "nm -D --defined-only '$DT_BUILD/.libs/spank_dt_tune.so' | cut -d' ' -f3 | sort | tr '\n' ' '"
    [ "$output" = "plugin_name plugin_type plugin_version slurm_spank_init slurm_spank_init_post_opt spank_plugin_version " ] ||
        [ "$output" = "plugin_name plugin_type plugin_version slurm_spank_init slurm_spank_init_post_opt " ]
    run bash -c "nm -D --defined-only '$DT_BUILD/.libs/job_submit_dt_tune.so' | cut -d' ' -f3 | sort | tr '\n' ' '"
    [ "$output" = "fini init job_modify job_submit plugin_name plugin_type plugin_version " ]
    for plugin in "$DT_BUILD"/.libs/*.so; do
        run bash -c "readelf -d '$plugin' | grep NEEDED | grep -v 'libc\.so'"
        [ "$output" = "" ]
    done
}

@test "whatever the plugins take from Slurm is there when they are loaded" {
    # Slurm itself loads them lazily: what it lacks would end slurmctld at the first job.
    slurm=$(ldd "$(command -v sbatch)" | sed -nE 's/.*=> (.*libslurmfull[^ ]*).*/\1/p')
    "${PYTHON-python3}" - "$slurm" "$DT_BUILD"/.libs/*.so <<'END'
import ctypes, os, sys
ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_GLOBAL)
for plugin in sys.argv[2:]:
    loaded = ctypes.CDLL(plugin, os.RTLD_NOW)
    assert ctypes.string_at(loaded.plugin_name), plugin
END
}

@test "sbatch --help shows the options" {
    sbatch --help >help
    for option in --dt-tune=SPEC.json --dt-ps=RANGE --dt-workers= --dt-param= --dt-objective= --dt-target= \
        --dt-max-configs= --dt-min-improve= --dt-parallel= --dt-deadline= --dt-repeats= --dt-max-node-hours= --dt-layout= --dt-dry-run --dt-resume= --dt-apply=STUDY; do
        grep -Eq -- "^ +$option" help
    done
}

@test "a big job becomes a job of one task that runs at once" {
    export STUB_RUN='env | grep -E "^SLURM_(GPU|TRES|SPANK|MEM_PER_CPU)"
        env | grep -E "^SLURM_(NTASKS|NPROCS|CPUS_PER_TASK)=" | grep -v "=1$"'
    job=$(sbatch --parsable --ntasks=12 --cpus-per-task=2 --gpus-per-task=1 --mem-per-cpu=100 --exclusive \
        --constraint=fast --licenses=dtlic:4 --nodelist=h2 --tmp=100 --time=3 --output=out --dt-tune train.sh a 'b c')
    wait_for 60 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ]
    is_tuning_job "$job"
    [ "$(field "$job" CPUs/Task)" = 1 ]
    [ "$(field "$job" MinMemoryNode)" = 64M ]
    [ "$(field "$job" TimeLimit)" = 00:07:00 ]
    [ "$(field "$job" Features)" = "(null)" ]
    [ "$(field "$job" Licenses)" = "(null)" ]
    [ "$(field "$job" JobName)" = train ]
    run field "$job" TRES
    [[ $output != *gpu* ]]
    diff out - <<<"tuner: --carrier a b c"
}

@test "prepare gets sbatch's path and its command line to the letter" {
    job=$(sbatch -H --parsable --comment= --dt-tune "--dt-param=x={a b,\$c'\"}" train.sh '' 'two words')
    [ "$(calls)" = 1 ]
    sed -i 's/^--fd=[0-9]*$/--fd=N/' args
    printf '%s\n' prepare "--sbatch=$(readlink -f "$(command -v sbatch)")" --fd=N -- sbatch -H --parsable --comment= \
        --dt-tune "--dt-param=x={a b,\$c'\"}" train.sh '' 'two words' >expected
    cmp args expected
}

@test "the tuning job's script carries the user's, byte for byte" {
    job=$(sbatch -H --parsable --dt-tune train.sh)
    scontrol write batch_script "$job" - >script
    sed '1,/^#DT-TUNE-SCRIPT$/d' script >tail
    cmp tail train.sh
    head -n 3 script >head
    printf '#!/bin/sh\nexec %s %s --carrier "$0" "$@"\n' "'$DT_BUILD/dt-tune'" "'run'" >expected
    printf '#DT-TUNE-JSON {"version":1,"exec":"%s","tuner":{"mem_mib":64,"time_min":7},"spec":{}}\n' "$DT_BUILD/dt-tune" >>expected
    cmp head expected
}

@test "a study of nearly 64 KiB arrives whole" {
    STUB=large
    job=$(sbatch --parsable --output=out --dt-tune train.sh)
    wait_for 60 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ]
    grep -q '^tuner:' out
    scontrol write batch_script "$job" script
    [ "$(grep '^#DT-TUNE-JSON' script | tr -dc x | wc -c)" -gt 65000 ]
}

@test "every way to write the option" {
    for option in --dt-tune --dt-tune=spec.json --dt-tu --dt-resume=dt-tune-1 '--dt-tune --dt-ps=0-4'; do
        # shellcheck disable=SC2086
        is_tuning_job "$(sbatch -H --parsable $option -n4 train.sh)"
        # shellcheck disable=SC2086
        is_tuning_job "$(sbatch -H --parsable $option -n4 --wrap hostname)"
        sed "2s/^/#SBATCH $option\n/" train.sh >directive.sh
        is_tuning_job "$(sbatch -H --parsable -n4 directive.sh)"
        is_tuning_job "$(sbatch -H --parsable -n4 <directive.sh)"
    done
    [ "$(calls)" = 20 ]
}

@test "prepare can read the script from standard input again" {
    STUB=stdin
    job=$(sbatch -H --parsable --dt-tune <train.sh)
    cmp stdin train.sh
    is_tuning_job "$job"
}

@test "--export does not lose the option" {
    for export in NONE NIL ALL VAR=1 HOME; do
        is_tuning_job "$(sbatch -H --parsable --export=$export --dt-tune train.sh)"
    done
}

@test "the user's own comment is kept" {
    job=$(sbatch -H --parsable --comment=mine --dt-tune train.sh)
    [ "$(field "$job" Comment)" = mine ]
}

@test "the tuner is warned before its time is up" {
    export STUB_RUN='trap "echo warned; exit" TERM; echo ready; while :; do sleep 0.1; done'
    job=$(sbatch --parsable --output=out --dt-tune train.sh)
    wait_for 60 grep -q ready out
    # A limit of one minute: the warning is due at once.
    scontrol update job "$job" TimeLimit=1
    wait_for 60 grep -q warned out
    wait_for 60 job_ended "$job"
    [ "$(job_state "$job")" = COMPLETED ]
}

@test "submissions from within a tuning job are ordinary ones" {
    export STUB_RUN='sbatch --parsable -o inner.out --wrap "srun -n2 hostname" >inner; srun -l hostname; salloc -n1 true'
    job=$(sbatch --parsable --output=out --dt-tune --dt-ps=1 -n3 train.sh)
    wait_for 60 job_ended "$job"
    cat out
    [ "$(job_state "$job")" = COMPLETED ]
    grep -q '^0: ' out
    run grep dt-tune: out
    [ "$output" = "" ]
    is_ordinary_job "$(cat inner)"
    [ "$(calls)" = 1 ]
}

@test "an option that came through the environment is not one that the user wrote" {
    export SLURM_SPANK__SLURM_SPANK_OPTION_dt_tune_dt_tune='(null)' SLURM_SPANK__SLURM_SPANK_OPTION_dt_tune_dt_ps=1
    run --separate-stderr sbatch -H --parsable --wrap hostname
    [ "$status" -eq 0 ]
    [ "$stderr" = "" ]
    is_ordinary_job "$output"
    run --separate-stderr srun hostname
    [ "$status" -eq 0 ]
    [ "$stderr" = "" ]
    run salloc -Q true
    [ "$status" -eq 0 ]
    [ "$output" = "" ]
    [ "$(calls)" = 0 ]
    is_tuning_job "$(sbatch -H --parsable --dt-tune --wrap hostname)"
}

@test "in a trial the options are ignored with one line" {
    sed '2s/^/#SBATCH --dt-tune --dt-ps=1\n/' train.sh >directive.sh
    run --separate-stderr env DT_TRIAL=3 SLURM_JOB_ID=1 sbatch -H --parsable -n3 directive.sh
    [ "$status" -eq 0 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"dt-tune: "*"ignored"*"trial"* ]]
    is_ordinary_job "$output"
    [ "$(field "$output" NumTasks)" = 3 ]
    [ "$(calls)" = 0 ]
}

@test "srun and salloc refuse the options" {
    refused 'works with sbatch only' srun --dt-tune hostname
    refused 'works with sbatch only' salloc --dt-ps=1 true
}

@test "other options need --dt-tune" {
    refused '--dt-ps needs --dt-tune' sbatch --dt-ps=1 train.sh
    refused '--dt-dry-run needs --dt-tune' sbatch --dt-dry-run train.sh
    [ "$(calls)" = 0 ]
}

@test "arrays, het jobs and carriers are refused by slurmctld too" {
    run --separate-stderr sbatch --array=0-1 --dt-tune train.sh
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[0]} == *'dt-tune: a job array cannot be tuned'* ]]
    [[ ${stderr_lines[1]} == *'Invalid job array specification'* ]]
    run --separate-stderr sbatch --dt-tune -n1 : -n2 train.sh
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[0]} == *'dt-tune: a heterogeneous job cannot be tuned'* ]]
    run --separate-stderr sbatch -n1 : --dt-tune -n2 train.sh
    [ "$status" -eq 1 ]
    [[ $stderr == *'dt-tune: a heterogeneous job cannot be tuned'* ]]
    printf '#!/bin/sh\nexec '"'/x'"' --carrier "$0" "$@"\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\n' >carrier.sh
    run --separate-stderr sbatch --dt-tune carrier.sh
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[0]} == *'dt-tune made'* ]]
    STUB=old
    run --separate-stderr sbatch --dt-tune train.sh
    [ "$status" -eq 1 ]
    [[ ${stderr_lines[0]} == *'same version'* ]]
    [ "$(queued)" = 0 ]
}

@test "a failing prepare: its one line, nothing submitted, be the plugin optional or required" {
    for kind in optional required; do
        sed "s/^optional/$kind/" "$DT_CLUSTER_DIR/etc/plugstack.orig" >"$DT_CLUSTER_DIR/etc/plugstack.conf"
        STUB=fail refused 'train.sh:4: no such thing' sbatch --dt-tune train.sh
        STUB=kill refused 'ended by signal 9' sbatch --dt-tune train.sh
        STUB=code refused 'exit code 7' sbatch --dt-tune train.sh
        STUB=big refused '64 KiB' sbatch --dt-tune train.sh
        STUB=two refused 'one line' sbatch --dt-tune train.sh
        # With SIGCHLD ignored, as from some daemons, an exit code is easily lost.
        STUB=fail refused 'no such thing' env --ignore-signal=CHLD sbatch --dt-tune train.sh
        # The job is tuned, not spoilt, where all is well.
        STUB='' is_tuning_job "$(sbatch -H --parsable --dt-tune train.sh)"
        scancel --me
        wait_for 60 eval '[ "$(queued)" = 0 ]'
    done
}

@test "a prepare that takes too long is stopped" {
    sed 's/$/ timeout=1/' "$DT_CLUSTER_DIR/etc/plugstack.orig" >"$DT_CLUSTER_DIR/etc/plugstack.conf"
    for STUB in hang deaf; do
        SECONDS=0
        refused 'took more than 1 seconds' sbatch --dt-tune train.sh
        [ $SECONDS -lt 150 ]
    done
}

@test "wrong lines in plugstack.conf are named" {
    plugstack=$DT_CLUSTER_DIR/etc/plugstack.conf
    echo "optional $DT_BUILD/.libs/spank_dt_tune.so dt_tune=/nonexistent/dt-tune" >"$plugstack"
    refused '/nonexistent/dt-tune: No such file or directory' sbatch --dt-tune train.sh
    echo "optional $DT_BUILD/.libs/spank_dt_tune.so tool=/x" >"$plugstack"
    refused 'cannot use tool=/x' sbatch --dt-tune train.sh
    run --separate-stderr sbatch -H --parsable train.sh
    [ "$status" -eq 0 ]
    [ "$stderr" = "" ]
}

@test "a dry run prints and submits nothing" {
    STUB=dry
    run --separate-stderr sbatch --dt-tune --dt-dry-run train.sh
    [ "$status" -eq 0 ]
    [ "$output" = "dry run" ]
    [ "$stderr" = "" ]
    STUB=pipe # as by | head
    run -1 --separate-stderr sbatch --dt-tune --dt-dry-run train.sh
    [ "$stderr" = "" ]
    [ "$(queued)" = 0 ]
}

@test "for a stored configuration sbatch becomes dt-tune, which submits" {
    STUB=apply
    sbatch --dt-apply --comment= train.sh 'two words' >out 2>err &
    local pid=$! status=0
    wait "$pid" || status=$?
    cat out err
    [ "$status" = 5 ]
    [ "$(cat out)" = "$pid submits: prepare --sbatch=$(readlink -f "$(command -v sbatch)") --submit -- sbatch --dt-apply --comment= train.sh two words" ]
    [ ! -s err ]
    [ "$(calls)" = 1 ]
    [ "$(queued)" = 0 ]
    STUB=fail refused 'train.sh:4: no such thing' sbatch --dt-apply train.sh
}

@test "scontrol update of a running tuning job works and does not transform it again" {
    export STUB_RUN='sleep 600'
    job=$(sbatch --parsable --output=out --dt-tune -n4 train.sh)
    wait_for 60 grep -q tuner out
    scontrol write batch_script "$job" before
    scontrol update job "$job" TimeLimit=5
    scontrol update job "$job" Comment=changed
    scontrol update job "$job" Nice=17
    [ "$(field "$job" TimeLimit)" = 00:05:00 ]
    [ "$(field "$job" Comment)" = changed ]
    [ "$(field "$job" Nice)" = 17 ]
    [ "$(field "$job" NumCPUs)" = 1 ]
    scontrol write batch_script "$job" after
    cmp before after
}

@test "a tuning job can be requeued" {
    export STUB_RUN='echo restarts ${SLURM_RESTART_COUNT-0}; sleep 600'
    job=$(sbatch --parsable --requeue --open-mode=append --output=out --dt-tune train.sh)
    wait_for 60 grep -q 'restarts 0' out
    node=$(node_of "$job")
    scontrol requeue "$job"
    again() {
        start_again "$job" "$node"
        grep -q 'restarts 1' out
    }
    wait_for 120 again
}

# What Slurm shows of a few ordinary jobs, without what differs from job to job.
show_ordinary_jobs() {
    local args job
    while read -r args; do
        # shellcheck disable=SC2086
        job=$(sbatch -H --parsable $args train.sh x)
        scontrol show job "$job" | sed -E "s/(JobId=|slurm-)$job/\\1ID/g; s/(Time|EligibleTime|LastSchedEval|AccrueTime)=[^ ]*//g; s/AllocNode:Sid=[^ ]*//; s/Priority=[^ ]*//"
        scontrol write batch_script "$job" -
    done <<'END'
-n1
--ntasks=6 --cpus-per-task=2 --gpus-per-task=1 --mem-per-cpu=100 --exclusive --constraint=fast --licenses=dtlic:2
--array=0-3 -N2 --tmp=5 --signal=B:USR1@30 --comment=mine
--export=NONE --nodelist=h2 --time=5 --time-min=2 --contiguous
END
    job=$(sbatch -H --parsable -n1 : -n2 train.sh)
    scontrol show job "$job" | grep -E 'NumNodes|Command|Comment|TRES'
    srun -n2 -l bash -c 'env | grep SPANK; true'
}

@test "ordinary jobs are the same with and without the plugins" {
    show_ordinary_jobs >with
    other=$("$BATS_TEST_DIRNAME/dt-cluster" up --gpus 2)
    (
        eval "$("$BATS_TEST_DIRNAME/dt-cluster" env "$other")"
        show_ordinary_jobs >without
        scancel --me
    )
    [ "$(grep -c JobId= with)" -ge 4 ]
    diff with without
    [ "$(calls)" = 0 ]
}

@test "the SPANK plugin is silent on the nodes" {
    srun -N4 hostname
    run grep -hiE 'dt_tune|dt-tune|spank' "$DT_CLUSTER_DIR"/log/slurmd-*.log
    [ "$output" = "" ]
    run grep -hE 'dt_tune|dt-tune' "$DT_CLUSTER_DIR"/log/slurmctld.log
    [ "$output" = "" ]
}
