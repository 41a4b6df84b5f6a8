#!/usr/bin/env bats
# What a study has found is kept, and a later submission of the same program gets it by --dt-apply.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 4 --cpus 4 --mem 4096 --conf KillWait=30 # a study that is told to end has time for its entry
    [ -z "${DT_CLUSTER_MISSING-}" ] || return 0
    # Two studies of two programs, which all tests look at: one het, one packed.
    export het packed common_history=$DT_TUNE_HISTORY
    cd "$BATS_FILE_TMPDIR"
    script
    printf '#!/bin/bash\n# another\nsrun true\n%s\n' "$(fast_with 3)" >other.sh
    het=$(study --dt-ps=1 --dt-workers=2,3 --dt-layout=het --dt-param=lr={1,2} train.sh)
    wait_for 120 job_ended "$het"
    packed=$(study -n 2 --dt-ps=1 --dt-workers=2,3 --dt-layout=packed other.sh)
    wait_for 120 job_ended "$packed"
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    export DT_TUNE_HISTORY=$common_history
    cd "$BATS_TEST_TMPDIR"
    unset "${!SBATCH_@}"
    cp "$BATS_FILE_TMPDIR"/*.sh .
}

teardown() {
    [ -n "${DT_CLUSTER_MISSING-}" ] || scancel --me
}

# fast_with N: shell code that takes longer, by more than a busy machine does, unless there are N workers.
fast_with() {
    echo "case \$DT_PLAN in *'\"name\":\"worker\",\"count\":$1,'*) ;; *) sleep 3 ;; esac"
}

script() {
    cat >train.sh <<END
#!/bin/bash
#SBATCH --ntasks=2 --time=5 --mem-per-cpu=100M
# a comment
srun sh -c 'echo "task \$DT_ROLE \$DT_ROLE_RANK lr=\${DT_PARAM_lr-none}"
$together' || exit
$(fast_with 3)
END
}

# study OPTION...: submits a study, prints its job's id.
study() {
    sbatch --parsable --dt-tune --dt-max-configs=4 "$@"
}

# field JOB NAME: what Slurm shows of a job, of a het job of all components.
field() {
    scontrol -o show job "$1" | sed -nE "s,.* $2=([^ ]*).*,\1,p" | xargs
}

# ran JOB FILE: the job has ended well, with one server and three workers, lr as the study found it.
ran() {
    wait_for 120 job_ended "$1"
    cat "$2"
    [ "$(job_state "$1")" = COMPLETED ]
    [ "$(grep -c '^task worker' "$2")" = 3 ]
    [ "$(grep -c '^task ps 0' "$2")" = 1 ]
    [ "$(grep -c "lr=$(json "$BATS_FILE_TMPDIR/dt-tune-$het/best.json" 'o["lr"]')" "$2")" = 4 ]
}

# json FILE EXPRESSION: prints a Python expression over o, the object in FILE.
json() {
    /usr/bin/python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"
}

@test "dt-tune history: the list, newest first, as text and as JSON" {
    dt-tune history >list
    cat list
    [ "$(wc -l <list)" = 3 ]
    [ "$(awk '{print (length($0) > 100)}' list | sort -u)" = 0 ]
    sed -n 1p list | grep -Eq '^WHEN +STUDY +KEY +OBJECTIVE +TRIALS +BEST +CONFIGURATION$'
    sed -n 2p list | grep -Eq "^....-..-.. ..:.. +$packed +[0-9a-f]{12} +time +3 +[0-9.]+ +ps=1 workers=3$"
    sed -n 3p list | grep -Eq "^....-..-.. ..:.. +$het +[0-9a-f]{12} +time +4 +[0-9.]+ +ps=1 workers=3 layout=het lr=[12]$"
    dt-tune history --format=json >list.json
    [ "$(json list.json 'o["version"], [s["version"] for s in o["studies"]]')" = "(1, [1, 1])" ]
    [ "$(json list.json 'o["history"]')" = "$DT_TUNE_HISTORY" ]
    [ "$(json list.json '[s["study"] for s in o["studies"]]')" = "['$packed', '$het']" ]
    json list.json 'o["studies"][1]["best"]["config"]' >config
    json "$BATS_FILE_TMPDIR/dt-tune-$het/best.json" o | diff - config
}

@test "dt-tune history: filters, one study, wrong use" {
    sed -i 's/# a comment/#another one/; s/--ntasks=2/--ntasks=7/' train.sh
    dt-tune history --script=train.sh >list
    [ "$(wc -l <list)" = 2 ]
    grep -q " $het " list
    dt-tune history --key="$(dt-tune history | awk "\$3 == \"$packed\" {print \$4}")" >list
    [ "$(wc -l <list)" = 2 ]
    grep -q " $packed " list
    run -0 --separate-stderr dt-tune history --key=nothing
    [ "$output" = "" ]
    [ "$stderr" = "dt-tune: $DT_TUNE_HISTORY: no such study is in this history" ]

    dt-tune history --show="$het" >one
    cat one
    grep -q "^records:   $BATS_FILE_TMPDIR/dt-tune-$het$" one
    # of a trial that is over before it was seen to run, the nodes are not known
    [ "$(grep -Ec '^[1-4] +ok +[0-9.]+ +[0-9.]+ +[12-] +ps=1 workers=' one)" = 4 ]
    dt-tune history --show="$BATS_FILE_TMPDIR/dt-tune-$het" | diff - one
    dt-tune history --show="$het" --format=json >one.json
    [ "$(json one.json 'sorted(set(o["observations"][3]) - {"nodes"})')" = \
        "['config', 'duration_s', 'metrics', 'status', 'trial', 'value']" ]
    [ "$(json one.json '[p["name"] for p in o["space"]]')" = "['ps', 'workers', 'layout', 'lr']" ]

    local option
    for option in --show=4711 --format=xml --script=nowhere.sh extra --sorted; do
        run -2 --separate-stderr dt-tune history $option
        [ "$output" = "" ]
        [[ $stderr == *"dt-tune: history: "* ]]
    done
    run -2 dt-tune history --show=4711
    [[ $output == 'dt-tune: history: --show: there is no study "4711" in '*'; dt-tune history lists those that are there' ]]
}

@test "sbatch --dt-apply and dt-sbatch --dt-apply: the het job, printed as sbatch prints" {
    local job jobs=()
    run -0 --separate-stderr sbatch --dt-apply --output=a.out train.sh
    [[ $output =~ ^Submitted\ batch\ job\ [0-9]+$ ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == "dt-tune: in the best configuration of study $het (time "*" s): ps=1 workers=3 layout=het lr="* ]]
    jobs+=("${output##* }")
    run -0 --separate-stderr dt-sbatch --parsable --dt-apply --output=b.out train.sh
    [[ $output =~ ^[0-9]+$ ]]
    [[ $stderr == "dt-tune: in the best configuration of study $het "* ]]
    jobs+=("$output")
    for job in "${jobs[@]}"; do
        [ "$(field "$job" HetJobOffset | tr ' ' '\n' | sort | xargs)" = "0 1" ]
        [ "$(field "$job" NumTasks | tr ' ' '\n' | sort | xargs)" = "1 3" ]
        [ "$(field "$job" JobName)" = "train.sh train.sh" ]
        [ "$(field "$job" TimeLimit)" = "00:05:00 00:05:00" ]
        [ "$(field "$job" MinMemoryCPU)" = "100M 100M" ]
    done
    ran "${jobs[0]}" a.out
    ran "${jobs[1]}" b.out
    # --quiet is sbatch's own: it prints nothing, not even the id
    run -0 --separate-stderr sbatch --quiet --hold --dt-apply=$het train.sh
    [ "$output$stderr" = "" ]
    [ "$(squeue -h -t PD -o %j)" = "$(printf 'train.sh\ntrain.sh')" ]
}

@test "sbatch --dt-apply: the packed job, with the user's own options, arguments and variables" {
    local job submit
    export SBATCH_TIMELIMIT=4 SBATCH_PARTITION=short SBATCH_MEM_PER_NODE=200M
    for submit in sbatch dt-sbatch; do
        job=$($submit --parsable --dt-apply --ntasks=2 --nice=7 --hold other.sh)
        [ "$(field "$job" TimeLimit)/$(field "$job" Partition)/$(field "$job" Nice)" = 00:04:00/short/7 ]
        [ "$(field "$job" MinMemoryNode)/$(field "$job" HetJobId)" = 200M/ ]
        [ "$(field "$job" JobState)" = PENDING ] # --hold
        scancel "$job"
    done
    # of two components each has what the variable says, and no more
    job=$(SBATCH_GPUS=0 sbatch --parsable --dt-apply --hold train.sh)
    [ "$(field "$job" NumTasks | tr ' ' '\n' | sort | xargs)" = "1 3" ]
    unset "${!SBATCH_@}"

    run -0 --separate-stderr sbatch --wait --dt-apply -n 2 --output=w.out other.sh
    wait_for 60 job_ended "${output##* }" # which --wait says before its nodes do
    [ "$(job_state "${output##* }")" = COMPLETED ]
    # sbatch --wait ends as the job does
    printf '#!/bin/bash\nsrun true\nexit 3\n' >fails.sh
    run -3 --separate-stderr sbatch --wait --dt-apply=$packed --output=w.out fails.sh
    # by folder, with an argument that the study never saw
    { printf 'srun sh -c '\''echo "arg <$1>"\n%s'\'' sh "$1"\n' "$together"; } >program
    sed -i -e '/^srun true/{r program' -e 'd}' other.sh
    job=$(sbatch --parsable "--dt-apply=$BATS_FILE_TMPDIR/dt-tune-$packed" --output=d.out other.sh 'two words')
    wait_for 120 job_ended "$job"
    cat d.out
    [ "$(grep -cx 'arg <two words>' d.out)" = 4 ]
}

@test "a comment more is the same program, another command or argument is not" {
    local submit jobs
    sed -i 's/# a comment/# why this\n\n   # and that  /; s/--ntasks=2 --time=5/--ntasks=1 --time=3/' train.sh
    job=$(sbatch --parsable --hold --dt-apply train.sh)
    [ "$(field "$job" TimeLimit)" = "00:03:00 00:03:00" ]
    scancel "$job"
    [ "$(sbatch --dt-apply --dt-dry-run <train.sh 2>err | grep -c '^#SBATCH hetjob$')" = 1 ]
    grep -q "of study $het " err
    jobs=$(squeue -h -t PD,R | wc -l)
    for submit in sbatch dt-sbatch; do
        run ! --separate-stderr $submit --dt-apply train.sh --epochs=3
        [ "$output" = "" ]
        [ "${#stderr_lines[@]}" -eq 1 ]
        [[ $stderr == "dt-tune: --dt-apply: no study of train.sh is known in $DT_TUNE_HISTORY "*"tune it first, or give --dt-apply=STUDY, one that dt-tune history lists" ]]
    done
    sed -i 's/task /Task /' train.sh
    run -1 --separate-stderr sbatch --dt-apply train.sh
    [[ $stderr == *"no study of train.sh is known"* ]]
    [ "$(squeue -h -t PD,R | wc -l)" = "$jobs" ]
}

@test "as a #SBATCH line; over one that says how to tune; under an option that does" {
    sed -i '2s/^/#SBATCH --dt-tune --dt-ps=1 --dt-workers=7-8 --dt-param=lr=1..9\n/' train.sh
    job=$(sbatch --parsable --hold --dt-apply train.sh)
    [ "$(field "$job" NumTasks | tr ' ' '\n' | sort | xargs)" = "1 3" ]
    scancel "$job"
    cp "$BATS_FILE_TMPDIR/train.sh" .
    sed -i '2s/^/#SBATCH --dt-apply\n/' train.sh
    job=$(sbatch --parsable --hold train.sh)
    [ "$(field "$job" NumTasks | tr ' ' '\n' | sort | xargs)" = "1 3" ]
    scancel "$job"
    job=$(sbatch --parsable --hold --dt-tune --dt-workers=1,2 train.sh)
    [ "$(field "$job" Comment)/$(field "$job" NumTasks)" = dt-tune/1 ]
}

# refused WANT ARGUMENT...: by sbatch and dt-sbatch alike, in one line.
refused() {
    local submit want=$1 code=2
    shift
    for submit in dt-sbatch sbatch; do
        run --separate-stderr $submit "$@"
        echo "$submit $*: $status $output $stderr"
        [ "$status/$output" = "$code/" ]
        [ "${#stderr_lines[@]}" -eq 1 ]
        # shellcheck disable=SC2053
        [[ $stderr == "dt-tune: "$want ]]
        code=1
    done
}

@test "a configuration that does not fit, and other refusals, submit nothing" {
    local found="--dt-apply: the configuration of study"
    refused "$found $het (time * s), ps=1 workers=3 layout=het lr=?, cannot run here: layout het: too few or too small nodes*" \
        --dt-apply --exclude='h[2-4]' train.sh
    refused "$found $packed (*), ps=1 workers=3, cannot run here: layout packed: more CPUs, memory*" \
        --dt-apply --cpus-per-task=64 other.sh
    refused "$found $het * cannot run here: layout het: every component would demand *" --dt-apply --nodelist=h1 train.sh
    refused '--dt-apply: "nope" is neither a study?s folder nor one of those in *' --dt-apply=nope train.sh
    refused '--dt-apply: the study is missing; *' --dt-apply= train.sh
    refused '--dt-apply and --dt-tune exclude each other*' --dt-apply --dt-tune train.sh
    refused '--dt-apply and --dt-resume exclude each other*' "--dt-resume=$BATS_FILE_TMPDIR/dt-tune-$het" --dt-apply train.sh
    refused '--dt-apply and --dt-workers exclude each other*' --dt-apply --dt-workers=2 train.sh
    refused '--dt-apply: no study of train.sh is for the objective cost, *' --dt-apply --dt-objective=cost train.sh
    refused '*--array: *' --dt-apply --array=0-3 train.sh
    refused '--dt-apply: *best.sh is in a configuration already*' --dt-apply "$BATS_FILE_TMPDIR/dt-tune-$packed/best.sh"
    run -1 srun --dt-apply true
    [ "$(squeue -h -t PD,R | wc -l)" = 0 ]
}

@test "a second study of a script starts from what the first found, also when it is resumed" {
    printf '#!/bin/bash\n#SBATCH -n1 --mem=10\n: warm\n%s\n' "$(fast_with 3)" >warm.sh
    local first second
    first=$(sbatch --parsable --dt-tune --dt-workers=1-4 --dt-max-configs=4 --output=1.out warm.sh)
    wait_for 120 job_ended "$first"
    [ "$(grep -c '^warm start:' 1.out)" = 0 ]
    second=$(sbatch --parsable --dt-tune --dt-workers=1-4 --dt-max-configs=2 --output=2.out warm.sh)
    wait_for 120 job_ended "$second"
    cat 2.out
    [ "$(grep -Ec '^warm start: 1 earlier study, [34] observations$' 2.out)" = 1 ]
    # trial 1 is the job as submitted, trial 2 the best of the first study
    sed -n 's/.*"event":"created".*"trial":2,.*"config":\({[^}]*}\).*/\1/p' "dt-tune-$second/journal.jsonl" >config
    [ "$(json config 'o["workers"]')" = "$(json "dt-tune-$first/best.json" 'o["workers"]')" ]
    # what it started with is its own: the history may go
    dt-tune history --script=warm.sh --format=json >list.json
    rm "$DT_TUNE_HISTORY/$(json list.json 'o["studies"][0]["signature"]').jsonl"
    dt-tune report "$second" | grep -q '^warm start: 1 earlier study'
    second=$(sbatch --parsable --dt-tune --dt-resume="$second" --dt-max-configs=3 --output=3.out warm.sh)
    wait_for 120 job_ended "$second"
    cat 3.out
    grep -q '^warm start: 1 earlier study' 3.out
    echo '{"history": false, "dt": {"workers": {"low": 1, "high": 4}}, "search": {"max_configs": 1}}' >cold.json
    second=$(sbatch --parsable --dt-tune=cold.json --output=4.out warm.sh)
    wait_for 120 job_ended "$second"
    [ "$(grep -c '^warm start:' 4.out)" = 0 ]
    echo '{"history": {"from": ["4711"]}, "dt": {"workers": [1, 2]}}' >from.json
    run ! --separate-stderr sbatch --dt-tune=from.json warm.sh
    [[ $stderr == *'history.from: there is no study "4711" in '* ]]
}

@test "a resumed study has one entry" {
    printf '#!/bin/bash\n#SBATCH -n1 --mem=10\n: resumed\n' >third.sh
    local id again
    id=$(sbatch --parsable --dt-tune --dt-workers=1-4 --dt-max-configs=2 --output=1.out third.sh)
    wait_for 120 job_ended "$id"
    again=$(sbatch --parsable --dt-tune --dt-resume="$id" --dt-max-configs=4 --output=2.out third.sh)
    wait_for 120 job_ended "$again"
    dt-tune history --script=third.sh >list
    cat list
    [ "$(wc -l <list)" = 2 ]
    grep -Eq " $id +[0-9a-f]+ +time +4 " list
    [ "$(cat "$DT_TUNE_HISTORY"/*.jsonl | grep -c "\"study\":\"$id\"")" = 2 ]
}

@test "SPEC's history: false and a key; the folder is that of the submission" {
    printf '#!/bin/bash\n#SBATCH -n1 --mem=10\n: keyed\n' >fourth.sh
    local id
    echo '{"history": false, "dt": {"workers": [1, 2]}}' >spec.json
    id=$(sbatch --parsable --dt-tune=spec.json --output=3.out fourth.sh)
    wait_for 120 job_ended "$id"
    [ "$(job_state "$id")" = COMPLETED ]
    [ "$(dt-tune history --script=fourth.sh)" = "" ]
    echo '{"history": {"key": "a net"}, "dt": {"workers": [1, 2]}}' >spec.json
    id=$(env DT_TUNE_HISTORY="$PWD/own" sbatch --parsable --dt-tune=spec.json --export=NONE --output=4.out fourth.sh)
    wait_for 120 job_ended "$id"
    [ "$(stat -c %a own)" = 700 ]
    export DT_TUNE_HISTORY=$PWD/own
    dt-tune history --key='a net' | grep -q " $id  *a net  "
    [ "$(sbatch --dt-apply='a net' --dt-dry-run train.sh 2>&1 | grep -c "of study $id ")" = 1 ]
    [ "$(sbatch --dt-apply --dt-dry-run fourth.sh 2>&1 | grep -c "of study $id ")" = 1 ]
}

@test "a history that cannot be written harms no study" {
    printf '#!/bin/bash\n#SBATCH -n1 --mem=10\n: fifth\n' >fifth.sh
    local id
    : >file
    id=$(env DT_TUNE_HISTORY="$PWD/file" sbatch --parsable --dt-tune --dt-workers=1,2 --output=5.out fifth.sh)
    wait_for 120 job_ended "$id"
    cat 5.out
    [ "$(job_state "$id")" = COMPLETED ]
    [ "$(grep -c '^warning: this study is not in the history: .*/file: is not a directory$' 5.out)" = 1 ]
    [ -x "dt-tune-$id/best.sh" ]
    run -1 --separate-stderr env DT_TUNE_HISTORY="$PWD/file" sbatch --dt-apply fifth.sh
    [[ $stderr == "dt-tune: --dt-apply: $PWD/file: Not a directory" ]]
}

@test "an interrupted study is kept too" {
    printf '#!/bin/bash\n#SBATCH -n1 --mem=10\n[ $DT_TRIAL = 1 ] || sleep 100\n' >slow.sh
    local id
    id=$(sbatch --parsable --dt-tune --dt-workers=1-4 --output=1.out slow.sh)
    wait_for 60 grep -qs '"event":"started","trial":2' "dt-tune-$id/journal.jsonl"
    scancel "$id"
    wait_for 120 job_ended "$id"
    cat 1.out
    dt-tune history --script=slow.sh --format=json >list.json
    [ "$(json list.json '[(s["study"], s["complete"], s["trials"]) for s in o["studies"]]')" = "[('$id', False, 2)]" ]
    [[ $(sbatch --parsable --hold --dt-apply slow.sh 2>&1) == *"of study $id "* ]]
}
