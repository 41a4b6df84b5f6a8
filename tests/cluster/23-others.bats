#!/usr/bin/env bats
# What others see and feel of a study, and what they can do to it; and names and places that nobody expected.

bats_require_minimum_version 1.5.0
load common
load life

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --nodes 6 --cpus 8 --conf "PartitionName=hidden Nodes=h[1-6] State=UP Hidden=YES"
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    base=$(mktemp -d /tmp/dt-others.XXXXXX) # where other users get to
    chmod 755 "$base"
    mkdir -m 1777 "$base/place"
    cd "$base/place"
}

teardown() {
    if [ -n "${base-}" ]; then
        for user in root daemon nobody; do
            scancel --user="$user" 2>/dev/null || true
        done
        cd /
        ! mountpoint -q "$base/place/disk" || umount "$base/place/disk"
        rm -rf "$base"
    fi
}

# The user that a study belongs to, and another one.
owner() {
    setpriv --reuid=daemon --regid=daemon --clear-groups env HOME="$base" DT_TUNE_HISTORY="$PWD/history" "$@"
}

other() {
    setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/nonexistent DT_TUNE_HISTORY=/nonexistent "$@"
}

need_users() {
    [ "$(id -u)" = 0 ] || skip "only root can become other users"
}

# denied WORDS COMMAND...: it fails, and says so.
denied() {
    run "${@:2}"
    [ "$status" -ne 0 ] || { echo "it worked: ${*:2}" && return 1; }
    [[ $output == *$1* ]] || { echo "${*:2}: $output" && return 1; }
}

@test "another user can neither read a study, nor go on with it, end it or feed it with results" {
    need_users
    secret=hunter2-$RANDOM$RANDOM
    plain_course() { SUBMIT="owner sbatch" start . 0.2 && soon 60 job_ended "$job" && configs >"$BATS_FILE_TMPDIR/configs-plain"; }
    at_once_as_owner() { mkdir -m 1777 "$1" && cd "$1" && "$1" && cd ..; }
    at_once_as_owner plain_course
    SUBMIT="owner env SECRET=$secret sbatch" start . "0.2 held"
    soon 90 lines begun 2
    [ "$(stat -c %a "$dir")" = 700 ]
    trial=$(trial_job 2)
    denied "Permission denied" other cat "$dir/journal.jsonl"
    denied "Permission denied" other dt-tune report "$dir"
    denied "Permission denied" other dt-tune watch "$job"
    denied "Permission denied" other dt-sbatch --dt-tune --dt-resume="$dir" train.sh
    denied "Permission denied" other dt-sbatch --here --dt-tune --dt-resume="$job" train.sh
    denied "Permission denied" other sbatch --dt-tune --dt-resume="$job" train.sh
    denied "" other env DT_METRICS_FILE="$dir/trials/0002/metrics.jsonl" DT_TRIAL=2 DT_TRIAL_DIR="$dir/trials/0002" \
        dt-tune metric accuracy=1
    for id in "$job" "$trial"; do
        denied "Access/permission denied" other scancel -v "$id"
        denied "Access/permission denied" other scancel -v --batch --signal=USR1 "$id"
        denied "Invalid user id" other scontrol update job "$id" Comment=x
    done
    # a job that is called as the next trial will be is neither taken for it nor cancelled with the study's own
    name=$(scontrol -o show job "$trial" | sed -nE 's/.* JobName=([^ ]+) .*/\1/p')
    [[ $name == t.dt-$job-2-1 ]]
    decoy=$(other sbatch --parsable --hold --job-name="t.dt-$job-3-1" --mem=10 --output=/dev/null --wrap true)
    # nothing of what only the owner's jobs are to know is where others can see it
    run other scontrol -o show jobs
    [[ $output != *"$secret"* ]]
    run grep -rls "$secret" "$DT_CLUSTER_DIR/log" "$dir" # a file may go meanwhile
    [ "$output" = "" ]
    scontrol -o show job "$job" | grep -q 'Comment=dt-tune' # there is one to be looked at
    touch released
    soon 60 job_ended "$job"
    is_state "$decoy" PENDING
    other scancel "$decoy"
    finished
    whole
}

@test "a folder or a link that somebody has put in the place of the study's is not used" {
    need_users
    last=$(owner sbatch --parsable --hold --mem=10 --output=/dev/null --wrap true)
    other mkdir -m 777 "dt-tune-$((last + 1))"
    owner mkdir -m 777 "$base/place/own"
    other ln -s "$base/place/own" "dt-tune-$((last + 2))"
    SUBMIT="owner sbatch" start . 0.2
    [ "$job" = $((last + 1)) ]
    finished FAILED
    grep -q "^dt-tune: $dir: belongs to another user (uid $(id -u nobody))" "$output"
    SUBMIT="owner sbatch" start . 0.2
    [ "$job" = $((last + 2)) ]
    finished FAILED
    grep -q "^dt-tune: $dir: is a link that dt-tune has not made" "$output"
    [ "$(find own "dt-tune-$((last + 1))" | wc -l)" = 2 ]
    [ ! -e begun ]
}

@test "trials in a partition that is hidden from their owner are seen all the same" {
    need_users
    SUBMIT="owner sbatch" start . "0.2 held" --partition=hidden
    soon 90 lines begun 2
    [ "$(owner squeue -h | wc -l)" = 0 ]
    owner scancel --signal=KILL --full "$(trial_job 2)" # it cannot say how it ended
    soon 60 event ended 2
    echo "cause: $(ended 2 cause)"
    [ "$(ended 2 cause | head -1)" != lost ]
    touch released
    finished
}

@test "names and folders of any bytes do what others do, and nothing else" {
    export LC_ALL=C # for the tools that look at what Slurm prints
    long=$(printf 'x%.0s' {1..1000})
    names=("a\"b'c" '$(touch pwned);`touch pwned`' '%j%b % %% x' 'grüße 你' $'bad\xff\xfe' '-n --wrap=x' "$long")
    jobs=()
    for name in "${names[@]}"; do
        folder=$PWD/${name:0:200}
        mkdir "$folder"
        (cd "$folder" && script 0.1 0.1)
        jobs+=("$(cd "$folder" && sbatch --parsable --job-name="$name" --comment="$name" --chdir="$folder" --dt-tune \
            --dt-param="x={1,2}" --dt-workers=1 --dt-max-configs=2 train.sh)")
    done
    for i in "${!names[@]}"; do
        folder=$PWD/${names[i]:0:200}
        soon 60 job_ended "${jobs[i]}"
        is_state "${jobs[i]}" COMPLETED || { cat "$folder"/slurm-*.out && return 1; }
        [ -x "$folder/dt-tune-${jobs[i]}/best.sh" ]
        [ "$(sort "$folder/begun" | cut -d' ' -f1 | tr '\n' ' ')" = "1 2 " ]
    done
    [ "$(find . -name 'pwned*' | wc -l)" = 0 ]
    # what no line of a script can hold is refused before anything is submitted
    script 0.1
    for option in --job-name --comment --chdir; do
        denied "$option: a value with a control character" sbatch --dt-tune --dt-workers=1-2 "$option=a"$'\n'b train.sh
    done
    mkdir $'a\nb'
    cd $'a\nb'
    denied "the name of this folder: a value with a control character" sbatch --dt-tune --dt-workers=1-2 ../train.sh
    soon 60 no_jobs
}

@test "undisturbed: the sequence of trials that the others are compared with" {
    at_once plain_course
}

@test "a folder that is moved: between tuners, while one works, and with its trials behind a link" {
    between() {
        start . "0.2 held"
        soon 90 lines begun 2
        cancelled
        mkdir elsewhere disk2
        mv "$dir" elsewhere/study
        mv elsewhere/study/trials disk2/
        ln -s "$PWD/disk2/trials" elsewhere/study/trials
        touch victim
        ln -sf "$PWD/victim" elsewhere/study/best.sh
        touch released
        dir=$PWD/elsewhere/study
        cp train.sh elsewhere/
        cd elsewhere # trials run beside the folder
        cp ../released .
        resume "$dir"
        cat ../over >>over
        whole
        [ ! -s ../victim ]
    }
    at_work() {
        start . "0.2 held"
        soon 90 lines begun 2
        mv "$dir" moved
        old=$dir
        touch released
        soon 60 job_ended "$job"
        is_state "$job" FAILED
        grep -q "^dt-tune: $old/journal.jsonl: is not there any more" "slurm-$job.out"
        [ ! -e "$old/journal.jsonl" ]
        dir=$PWD/moved
        soon 60 no_jobs ".dt-$job-"
        resume "$dir"
        once
        whole
    }
    at_once between at_work
}

# once: trial 2 was repeated where the tuner could not note its end, and may have done all its work twice.
once() {
    [ "$(ended 2 run | tail -1)" = 1 ] || sort -u -k1,1n -o over over
}

# no_room PATH REASON: a study there, where nothing can be written any more once it works, ends with an error. Afterwards
# there is room again, and it can go on.
no_room() {
    script 0.2 held
    sed -i -E "s#(begun|over|released)#$PWD/&#" train.sh # what it notes is not there
    mv train.sh "$1"
    cd "$1"
    start . held
    cd "$base/place"
    soon 90 lines begun 2
    denied "$2" dd if=/dev/zero of="$1/filler" bs=1k count=4096 # to the last byte
    touch released
    soon 90 job_ended "$job"
    is_state "$job" FAILED
    soon 60 no_trials
    rm "$1/filler"
    sound
}

# goes_on PATH: the study that had no room there.
goes_on() {
    cp "$1/train.sh" .
    resume
    once
    whole
}

@test "a file system that is full, and one that cannot be written on: an error, no trial left, and then it goes on" {
    [ "$(id -u)" = 0 ] && mkdir disk && mount -t tmpfs -o size=2m none disk 2>/dev/null || skip "none may be mounted here"
    no_room disk "No space left on device"
    mount -o remount,ro "$PWD/disk"
    denied "Read-only file system" dt-sbatch --here --dt-tune --dt-resume="$dir" disk/train.sh
    mount -o remount,rw "$PWD/disk"
    goes_on disk
}

@test "a quota that is used up: an error, no trial left, and then it goes on" {
    command -v mkfs.btrfs >/dev/null || skip "btrfs-progs are not installed"
    truncate -s 120M image && mkfs.btrfs -q image
    [ "$(id -u)" = 0 ] && mkdir disk && mount -o loop image disk 2>/dev/null || skip "none may be mounted here"
    btrfs quota enable disk
    btrfs subvolume create disk/own
    btrfs qgroup limit 2M disk/own # for root too
    no_room disk/own "Disk quota exceeded"
    goes_on disk/own
}

@test "what a study asks of slurmctld: no list of all jobs, and no more questions than it may" {
    script 0.2
    sed -i '2a [ "$DT_TRIAL" -le 3 ] || exit 3' train.sh # of each failure Slurm is asked
    sdiag --reset
    begin=$SECONDS
    start . 0.2 --dt-max-configs=12 --dt-parallel=6 --dt-param=y={1,2,3,4,5,6}
    soon 120 grep -q '"event":"finished"' "$dir/journal.jsonl"
    seconds=$((SECONDS - begin))
    asked() { sdiag | sed '/statistics by user/,$d' | sed -nE "s/^\s+$1 .*count:([0-9]+).*/\1/p"; }
    [ "$(event ended 12 && asked REQUEST_SUBMIT_BATCH_JOB)" -ge 12 ]
    all=$(asked REQUEST_JOB_INFO) ours=$(asked REQUEST_JOB_USER_INFO)
    echo "$seconds s: REQUEST_JOB_INFO ${all:-0}, REQUEST_JOB_USER_INFO $ours"
    [ "${all:-0}" = 0 ]
    [ "$ours" -le $((10 + seconds / 3 + 5)) ]
    finished
}
