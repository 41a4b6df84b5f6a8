#!/usr/bin/env bats
# What src/spec reads from a submission is what the real sbatch reads from it: every script of
# tests/data/scripts is submitted held, and Slurm's view of the job is compared with
# `test_submission --print`. Known differences are listed here and nowhere else.

bats_require_minimum_version 1.5.0
load common

# sbatch takes these; dt-tune refuses them on purpose.
only_ours_refuses="bad-array.slrm bad-bsub.sh bad-hetjob.sh bad-packjob.sh bad-pbs.sh bad-test-only.sh"
# sbatch refuses these where pyxis is not installed; without asking sbatch we take --name=value.
only_sbatch_refuses="container.sh"

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up --gpus k80:4
}

teardown_file() {
    cluster_down
}

setup() {
    reader=${DT_BUILD-}/tests/unit/test_submission
    [ -x "$reader" ] || skip "$reader is not built"
    work=$(mktemp -d /tmp/dt-parity-test.XXXXXX)
    cp "$BATS_TEST_DIRNAME"/../data/scripts/* "$work"
    rm -f "$work"/*.expected
    cd "$work" || return 1
    # Slurm 24.11 wants to hear only one of the two.
    if [[ $(sbatch --hold duplicates.sh 2>&1) == *"mutually exclusive"* ]]; then
        sed -i /--oversubscribe/d duplicates.sh
    fi
}

teardown() {
    if [ -n "${work-}" ]; then
        scancel -u "$(id -un)"
        cd /
        rm -rf "$work"
    fi
}

is_in() {
    case " $2 " in *" $1 "*) return 0 ;; *) return 1 ;; esac
}

# Prints a field of a held job: field JOB NAME. Fields at the end of a line may hold blanks.
field() {
    case $2 in
    JobName | Comment) scontrol show job "$1" | sed -nE "s|^(.* )?$2=(.*[^ ]) *$|\2|p" ;;
    *) scontrol show job "$1" | sed -nE "s|^(.* )?$2=([^ ]*).*|\2|p" ;;
    esac | head -n 1
}

# The same of what a node, a task or a job gets, of which newer Slurm says gres/gpu:2 and names the CPUs of a task too.
tres() {
    field "$1" "$2" | sed -E 's|(^\|,)cpu=[0-9]+,?|\1|; s|gres/|gres:|g; s|=([0-9]+)|:\1|g'
}

# Any of Slurm's spellings of a time as whole minutes.
minutes() {
    local days=0 time=$1 h=0 m=0 s=0 a b c
    case $time in
    *-*)
        days=${time%%-*}
        IFS=: read -r h m s <<<"${time#*-}"
        ;;
    *)
        IFS=: read -r a b c <<<"$time"
        if [ -n "$c" ]; then h=$a m=$b s=$c; else m=$a s=$b; fi
        ;;
    esac
    echo $((((10#$days * 24 + 10#${h:-0}) * 3600 + 10#${m:-0} * 60 + 10#${s:-0} + 59) / 60))
}

# same JOB OPTION VALUE: fails where Slurm holds something else; options without a field pass.
same() {
    local is want=$3
    case $2 in
    partition) is=$(field "$1" Partition) ;;
    ntasks) is=$(field "$1" NumTasks) ;;
    cpus-per-task) is=$(field "$1" CPUs/Task) ;;
    nodes) is=$(field "$1" NumNodes) is=${is%-*} want=${want%-*} ;;
    time) is=$(minutes "$(field "$1" TimeLimit)") want=$(minutes "$want") ;;
    time-min) is=$(minutes "$(field "$1" TimeMin)") want=$(minutes "$want") ;;
    job-name) is=$(field "$1" JobName) ;;
    comment) is=$(field "$1" Comment) ;;
    constraint) is=$(field "$1" Features) ;;
    exclude) is=$(field "$1" ExcNodeList) ;;
    nodelist) is=$(field "$1" ReqNodeList) ;;
    nice) is=$(field "$1" Nice) ;;
    gres) is=$(tres "$1" TresPerNode) want=gres:$want ;;
    gpus-per-node) is=$(tres "$1" TresPerNode) want=gres:gpu:$want ;;
    gpus-per-task) is=$(tres "$1" TresPerTask) want=gres:gpu:$want ;;
    gpus) is=$(tres "$1" TresPerJob) want=gres:gpu:$want ;;
    licenses) is=$(field "$1" Licenses) ;;
    mail-type) is=$(field "$1" MailType) ;;
    requeue) is=$(field "$1" Requeue) want=1 ;;
    no-requeue) is=$(field "$1" Requeue) want=0 ;;
    oversubscribe) is=$(field "$1" OverSubscribe) want=YES ;;
    exclusive)
        local whole=NODE
        is=$(field "$1" Exclusive)
        [ -n "$is" ] || is=$(field "$1" OverSubscribe) whole=NO # before 26.05
        case $want in user) want=USER ;; *) want=$whole ;; esac
        ;;
    *) return 0 ;;
    esac
    checked=$((checked + 1))
    if [ "$is" != "$want" ]; then
        echo "--$2: we read \"$want\", Slurm has \"$is\""
        return 1
    fi
}

# Compares all that we read with the job that sbatch made of the same arguments; a name without
# a value counts too: what we did not read must have Slurm's default.
compare() {
    local job place option ours given=" "
    job=$(sbatch --hold --parsable "$@" 2>"$work/err") || {
        echo "sbatch refuses $*: $(cat "$work/err")"
        return 1
    }
    ours=$("$reader" --print "$@") || {
        echo "we refuse $*: $ours"
        return 1
    }
    while read -r place option; do
        case $place in warning: | argument:) continue ;; esac
        given+="${option%%=*} "
        same "$job" "${option%%=*}" "${option#*=}" || {
            echo "... in $*"
            return 1
        }
    done <<<"$ours"
    for option in ntasks=1 cpus-per-task=1 time=UNLIMITED partition=main; do
        # a number of tasks may follow from nodes and tasks per node
        case $option$given in
        ntasks*" nodes "*) continue ;;
        time*) # the partition's, if none was given
            case $given in *" time "* | *" partition "*) continue ;; esac
            [ "$(field "$job" TimeLimit)" = UNLIMITED ] || {
                echo "we read no time, Slurm has $(field "$job" TimeLimit) in $*"
                return 1
            }
            ;;
        *)
            is_in "${option%%=*}" "$given" || same "$job" "${option%%=*}" "${option#*=}" || {
                echo "... in $*"
                return 1
            }
            ;;
        esac
    done
}

@test "the table has exactly sbatch's options" {
    # An empty name abbreviates them all, and getopt names them.
    real=$(sbatch --=x 2>&1 | grep -o "'--[a-z0-9_-]*'" | tr -d "'" | grep -v '^--dt-' | sort)
    ours=$("$reader" --print --=x x | grep -o -- '--[a-z0-9_-]*' | grep -vE '^--(dt-.*|here)?$' | sort)
    echo "# $(wc -l <<<"$real") options" >&3
    [ "$(wc -l <<<"$real")" -gt 90 ]
    diff <(echo "$real") <(echo "$ours")
}

@test "scripts that sbatch takes mean the same to us" {
    checked=0 scripts=0
    for script in *; do
        case $script in bad-* | err) continue ;; esac
        is_in "$script" "$only_sbatch_refuses" && continue
        compare "$script"
        scripts=$((scripts + 1))
    done
    echo "# $scripts scripts, $checked values" >&3
    [ $scripts -ge 35 ]
    [ $checked -ge 100 ]
}

@test "scripts that sbatch refuses are refused by us, and none else but the known" {
    n=0
    for script in bad-* $only_sbatch_refuses; do
        run sbatch --hold "$script"
        if is_in "$script" "$only_ours_refuses"; then
            [ "$status" -eq 0 ]
        else
            [ "$status" -ne 0 ]
        fi
        run "$reader" --print "$script"
        if is_in "$script" "$only_sbatch_refuses"; then
            [ "$status" -eq 0 ]
        else
            [ "$status" -eq 2 ]
            [[ $output == "error: $script:"* ]]
        fi
        n=$((n + 1))
    done
    echo "# $n scripts" >&3
    [ $n -ge 40 ]
}

@test "command line and environment win over the script as in sbatch" {
    checked=0
    compare -n3 --time 1-0 duplicates.sh
    SBATCH_TIMELIMIT=99 compare duplicates.sh
    SBATCH_TIMELIMIT=99 compare -t 44 duplicates.sh
    compare --mail-type=END duplicates.sh
    SBATCH_EXCLUSIVE="" compare duplicates.sh
    SBATCH_EXCLUSIVE=user compare mem-zero.sub
    SBATCH_REQUEUE="" compare duplicates.sh
    SBATCH_PARTITION=short SBATCH_JOB_NAME="from outside" compare --comment "a # b" quoting.sh
    compare --ignore-pbs -n 5 bad-pbs.sh
    SBATCH_IGNORE_PBS=1 compare bad-pbs.sh
    compare -n2 --wrap '#SBATCH -n7'
    [ $checked -ge 20 ]
}

@test "the script is found where sbatch finds it" {
    checked=0
    mkdir sub bin
    printf '#!/bin/sh\n#SBATCH -n2\n' >sub/a.sh
    printf '#!/bin/sh\n#SBATCH -n3\n' >bin/a.sh
    printf '#!/bin/sh\n#SBATCH -n4\n' >a.sh
    printf '#!/bin/sh\n#SBATCH -n5\n' >b.sh
    printf '#!/bin/sh\n#SBATCH -n6\n' >bin/c.sh
    PATH=$PATH:$work/bin
    compare a.sh
    compare ./a.sh
    compare -D sub a.sh
    compare --chdir="$work/sub" ./a.sh
    compare -D sub b.sh
    compare c.sh x y
    compare sub/a.sh
    [ $checked -ge 7 ]
    run sbatch --hold -D sub d.sh
    [ "$status" -ne 0 ]
    run "$reader" --print -D sub d.sh
    [ "$status" -eq 2 ]
}
