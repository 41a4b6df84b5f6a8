#!/usr/bin/env bats
# Completion in bash: what a user gets by the TAB key, in a shell with and without Slurm's own completion.

bats_require_minimum_version 1.5.0

setup() {
    local top=$BATS_TEST_DIRNAME/../..
    files=$top/etc/completion
    DT_BUILD=$(cd "${DT_BUILD:-$top}" && pwd)
    PATH=$DT_BUILD:$PATH
    cd "$BATS_TEST_TMPDIR"
    mkdir dt-tune-12 dt-tune-13 other
    touch train.sh spec.json
}

# complete_line FUNCTION WORD...: what the function offers where the last word is being written; words as bash cuts them.
complete_line() {
    # shellcheck disable=SC2016
    bash --norc -c '
        . "$1"
        f=$2
        shift 2
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$f" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf "%s\n" "${COMPREPLY[@]}"' - "$files/dt-tune" "$@" 2>/dev/null | LC_ALL=C sort
}

offered() { # EXPECTED-WORDS FUNCTION WORD...
    local want=$1
    shift
    run complete_line "$@"
    echo "$*: ${lines[*]}"
    [ "${lines[*]}" = "$want" ]
}

@test "the commands of dt-tune, all of them" {
    offered "watch" _dt_tune dt-tune w
    offered "serve simulate suggest" _dt_tune dt-tune s
    offered "--version" _dt_tune dt-tune --v
    for command in $(dt-tune --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
        offered "$command" _dt_tune dt-tune "$command"
    done
}

@test "options of commands, and their values" {
    offered "--no-plugins" _dt_tune dt-tune doctor --n
    offered "--seed= --spec=" _dt_tune dt-tune simulate --s
    offered "csv" _dt_tune dt-tune report --format = c
    offered "csv html json optuna text" _dt_tune dt-tune report --format =
    offered "spec.json" _dt_tune dt-tune simulate --spec = sp
    offered "dt-tune-12 dt-tune-13" _dt_tune dt-tune watch ''
    offered "dt-tune-13" _dt_tune dt-tune report dt-tune-13
    offered "" _dt_tune dt-tune metric ''
}

@test "every option of the table is offered, to sbatch and dt-sbatch" {
    options=$(sed -nE 's/^    \{"(dt-[a-z-]+)", ("|0).*/--\1/p' "$BATS_TEST_DIRNAME/../../plugin/options.h")
    [ "$(wc -l <<<"$options")" -ge 16 ]
    for command in sbatch dt-sbatch; do
        complete_line _dt_sbatch $command --dt- >got
        while read -r option; do
            grep -qxE -- "$option=?" got || { echo "$command: no $option"; return 1; }
        done <<<"$options"
    done
    grep -qx -- --dt-config= got
    complete_line _dt_sbatch sbatch --dt- >got
    run ! grep -q -- --dt-config got
    offered "--here" _dt_sbatch dt-sbatch --he
    offered "" _dt_sbatch sbatch --he
}

@test "values of sbatch's new options" {
    for command in sbatch dt-sbatch; do
        offered "het" _dt_sbatch $command --dt-layout = h
        offered "cost max: min: throughput time turnaround" _dt_sbatch $command --dt-objective = ''
        offered "spec.json" _dt_sbatch $command --dt-tune = sp
        offered "dt-tune-12 dt-tune-13" _dt_sbatch $command --dt-resume =
        offered "train.sh" _dt_sbatch $command tr
    done
}

@test "Slurm's own completion of sbatch goes on, and comes first" {
    library=/usr/share/bash-completion/bash_completion
    [ -r $library ] || skip "bash-completion is not installed"
    mkdir -p share/bash-completion/completions
    cp "$files/dt-tune" share/bash-completion/completions/
    ln -s dt-tune share/bash-completion/completions/dt-sbatch
    # In Slurm's place: one file for all of its commands.
    cat >share/bash-completion/completions/sbatch <<'END'
_sbatch() { [[ ${COMP_WORDS[COMP_CWORD]} != -* ]] || COMPREPLY=(--slurms-own); }
_squeue() { COMPREPLY=(--squeues-own); }
complete -F _sbatch sbatch
complete -F _squeue squeue
END
    ln -s sbatch share/bash-completion/completions/squeue
    cat >script <<END
XDG_DATA_DIRS=$PWD/share BASH_COMPLETION_USER_DIR=$PWD/none BASH_COMPLETION_COMPAT_DIR=$PWD/none
. $library
. $files/dt-tune-sbatch
END
    cat >>script <<'END'
ask() { # as bash does: again where 124 is the answer
    local f status=124
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    while [ $status = 124 ]; do
        f=$(complete -p "$1" | sed -E 's/.*-F ([^ ]+).*/\1/')
        status=0
        "$f" "$1" "${COMP_WORDS[COMP_CWORD]}" "" 2>/dev/null || status=$?
    done
    echo "$1: ${COMPREPLY[*]}"
}
for first in $FIRST; do ask "$first" --dt-l; done
END
    FIRST="sbatch squeue sbatch dt-sbatch" run -0 bash --norc script
    [ "$output" = $'sbatch: --slurms-own --dt-layout=\nsqueue: --squeues-own\nsbatch: --slurms-own --dt-layout=\ndt-sbatch: --slurms-own --dt-layout=' ]
    FIRST="squeue sbatch" run -0 bash --norc script
    [ "$output" = $'squeue: --squeues-own\nsbatch: --slurms-own --dt-layout=' ]
}
