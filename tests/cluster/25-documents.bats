#!/usr/bin/env bats
# What the documents promise is there. No Slurm is needed.

bats_require_minimum_version 1.5.0

setup_file() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export top
}

@test "each complaint has its answer: the tests that are named are there" {
    rows=0
    while IFS='|' read -r _ number _ _ shown; do
        [[ $number =~ ^\ [PS][0-9]+\ $ ]] || continue
        rows=$((rows + 1))
        while read -r file name; do
            case $file in
            *"(7)":) file=$top/tools/${file%(7):}.7 ;;
            *) file=$top/tests/${file%:} ;;
            esac
            grep -qF -- "$name" "$file" || { echo "$number: no \"$name\" in $file" && false; }
        done < <(grep -o '`[^`]*`' <<<"$shown" | tr -d '`')
    done <"$top/tests/complaints.md"
    [ $rows = 60 ]
}
