#!/usr/bin/env bats
# Which jobs can ever start: dt-tune's word and Slurm's, on two of the models of tests/feasible/run.

load common

setup_file() {
    need_tools
}

need_tools() {
    local tool
    for tool in munged slurmctld slurmd; do
        PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || export DT_CLUSTER_MISSING=$tool
    done
    DT_BUILD=$(cd "${DT_BUILD:-$BATS_TEST_DIRNAME/../..}" && pwd)
    export DT_BUILD
}

@test "dt-tune and Slurm agree on what can start" {
    run "$BATS_TEST_DIRNAME/../feasible/run" "$DT_BUILD" 20 1 2 3
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -c '20 of 20 agree' <<<"$output")" = 2 ]
}
