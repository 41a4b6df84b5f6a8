#!/usr/bin/env bats
# What `dt-tune expand` makes of a script and a configuration, to the letter. No Slurm is needed.
#
# tests/data/expand/NAME.case sets, in shell: script (or none, with --wrap among the options), config
# (JSON; none: the job as submitted), cluster (a JSON file; gpu.json), options and env (arrays).
# NAME.expected is the output, with @LAUNCH@ for the path of dt-launch and "exit N" where it fails.
# After a change on purpose: DT_EXPAND_UPDATE=1, and read the difference.

bats_require_minimum_version 1.5.0

setup_file() {
    DT_BUILD=$(cd "${DT_BUILD:-$BATS_TEST_DIRNAME/../..}" && pwd)
    data=$(cd "$BATS_TEST_DIRNAME/../data/expand" && pwd)
    export DT_BUILD data
}

# expand NAME: prints what dt-tune makes of a case.
expand() {
    local script='' config='' cluster=gpu.json options=() env=() status=0 file
    # shellcheck disable=SC1090
    . "$data/$1.case"
    file=$BATS_TEST_TMPDIR/config.json
    printf '%s\n' "${config:-"{}"}" >"$file"
    cd "$data"
    env "${env[@]}" "$DT_BUILD/dt-tune" expand --cluster="$cluster" ${config:+--config="$file"} \
        "${options[@]}" ${script:+"$script"} >"$BATS_TEST_TMPDIR/text" 2>&1 || status=$?
    sed "s|$DT_BUILD/dt-launch|@LAUNCH@|; s|$file|C.json|" "$BATS_TEST_TMPDIR/text"
    [ $status = 0 ] || echo "exit $status"
}

@test "every case gives its expected script" {
    local case name failed=0
    unset "${!SBATCH_@}" "${!SLURM_@}"
    for case in "$data"/*.case; do
        name=${case##*/} name=${name%.case}
        (expand "$name") >"$BATS_TEST_TMPDIR/got"
        if [ -n "${DT_EXPAND_UPDATE-}" ]; then
            cp "$BATS_TEST_TMPDIR/got" "$data/$name.expected"
        elif ! diff -u --label "$name.expected" --label "$name, now" "$data/$name.expected" "$BATS_TEST_TMPDIR/got"; then
            failed=$((failed + 1))
        fi
    done
    [ $failed = 0 ]
}

@test "there are cases, and no expected text without one" {
    local file n=0
    for file in "$data"/*.expected; do
        [ -f "${file%.expected}.case" ]
        n=$((n + 1))
    done
    [ $n -ge 40 ]
}
