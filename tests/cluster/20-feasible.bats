#!/usr/bin/env bats
# Which jobs can ever start: dt-tune's word and Slurm's, on two of the models of tests/feasible/run.

load common

setup_file() {
    need_tools
}

need_tools() {
    local tool
    for tool in munged slurmctld slurmd; do
        PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || export DT_CLUSTER_MISSING="$tool is not installed"
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

@test "a saved cluster is shown, cut and checked without Slurm" {
    cd "$BATS_TEST_TMPDIR"
    export PATH=$DT_BUILD:$PATH
    cat >c.json <<'END'
{"version": 1, "cluster": "far", "backfill": true, "scheduling": {"memory": true},
 "kinds": [{"cpus": 8, "mem": 8192, "gpus": 2, "gres": "gpu:a:2", "partitions": "main", "features": "big",
            "nodes": [{"state": "idle", "names": "n[1-3]", "usable": true}, {"state": "drain", "names": "n4"}]}],
 "partitions": [{"name": "main", "state": "up", "preset": true, "max_nodes": 2}]}
END
    echo '{"dt": {"workers": [8, 16, 17], "worker_cpus": [1]}}' >spec.json
    dt-tune topo --cluster=c.json >out
    cat out
    grep -q '4 nodes, 3 of them usable, of 1 kind' out
    grep -q 'main (default): up, 3 of 4 nodes usable; at most 2 nodes a job' out
    dt-tune topo --cluster=c.json --node=n4 --format=json | grep -q '"nodes":\[{"state":"drain","names":"n4"}\]'
    dt-tune check --cluster=c.json spec.json | grep -q '1 excluded: workers: more CPUs'
    run dt-tune topo --cluster=c.json --node=n5
    [ "$status" = 2 ]
    [ "$output" = 'dt-tune: --node: there is no node "n5"' ]
    sed 's/"gpus": 2/"gpus": "two"/' c.json >bad.json
    run dt-tune check --cluster=bad.json spec.json
    [ "$status" = 2 ]
    [ "$output" = 'dt-tune: bad.json: kinds[0].gpus: a whole number, 0 or more, is needed here' ]
    run dt-tune topo --cluster=spec.json
    [ "$status" = 2 ]
    [[ $output == *"spec.json: a whole cluster is needed here"* ]]
}
