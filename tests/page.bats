#!/usr/bin/env bats
# The page of plots, of studies on a table: drawn by a browser on a wide and on a narrow screen. (cluster/22-report.bats has
# that of a study on a cluster.)

bats_require_minimum_version 1.5.0

setup() {
    export PATH=${DT_BUILD:-$BATS_TEST_DIRNAME/..}:$PATH
    check=$BATS_TEST_DIRNAME/cluster/page-check
    cd "$BATS_TEST_TMPDIR"
}

# drawn PAGE: page-check says that it saw all of it, on both screens.
drawn() {
    run "$check" "$1"
    echo "$output"
    [ "$status" = 0 ]
    [[ $output != "no chromium"* ]] || skip "no chromium is installed: the page is whole, but was not drawn"
    [[ $output == "wide: "*"narrow: "* ]]
}

@test "servers, workers and a learning rate: every plot, contours, each pair can be chosen" {
    awk 'BEGIN {
        print "n_ps,n_workers,lr,time_s"
        for (ps = 0; ps < 8; ps++)
            for (w = 1; w < 10; w++)
                for (lr = 0.001; lr < 0.2; lr *= 10)
                    print ps "," w "," lr "," 900 / w + (ps ? 40 * w / ps : 14 * w) + 6 * ps + 300 * (lr > 0.05)
    }' >table.csv
    cat >spec.json <<'END'
{"dt": {"ps": {"low": 0, "high": 7}, "workers": {"low": 1, "high": 9}},
 "hyperparameters": {"lr": {"low": 0.001, "high": 0.1, "log": true}},
 "search": {"max_configs": 20, "min_configs": 20},
 "replay": {"map": {"ps": "n_ps", "workers": "n_workers"}, "objective": "time_s", "goal": "minimize"}}
END
    dt-tune simulate --spec=spec.json --table=table.csv --format=html >page.html
    drawn page.html
    [[ $output == *"choices: [3]"* ]]
}

@test "words and failures: a study of nothing but choices, with trials that fail" {
    printf 'net,opt,time_s\n' >table.csv
    for net in '<b>a</b>' 'b&amp;' 'a name that is as long as that of a file on a disk'; do
        for opt in sgd adam; do echo "$net,$opt,$((${#net} * ${#opt}))"; done
    done >>table.csv
    cat >spec.json <<'END'
{"hyperparameters": {"net": ["<b>a</b>", "b&amp;", "a name that is as long as that of a file on a disk"],
                     "opt": ["sgd", "adam"]},
 "search": {"min_configs": 6}, "replay": {"objective": "time_s", "goal": "minimize"}}
END
    dt-tune simulate --spec=spec.json --table=table.csv --failures=30 --seed=3 --format=html >page.html
    drawn page.html
}

@test "simulate: one study a page" {
    run -2 dt-tune simulate --spec=spec.json --table=table.csv --repeat=2 --format=html
    [[ $output == *"--format=html shows one study"* ]]
}
