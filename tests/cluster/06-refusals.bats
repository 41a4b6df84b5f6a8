#!/usr/bin/env bats
# Wrong inputs: each is refused when it is submitted, by sbatch with the plugins and by dt-sbatch, in
# the same words and in one line that names the place and the cure; and it leaves nothing behind.

bats_require_minimum_version 1.5.0
load common

setup_file() {
    export BATS_NO_PARALLELIZE_WITHIN_FILE=true
    cluster_up
}

teardown_file() {
    cluster_down
}

setup() {
    need_cluster
    # Where a user without rights can look too.
    base=$(mktemp -d /tmp/dt-refusals.XXXXXX)
    mkdir -m 0777 "$base/work" "$base/tmp"
    chmod 0755 "$base"
    export TMPDIR=$base/tmp
    cd "$base/work" || return 1
    printf '#!/bin/sh\n#SBATCH --job-name=train\nsleep 300\n' >train.sh
    shopt -s nullglob dotglob
    rows=0 failures=() as=() jobs=$(known_jobs)
}

teardown() {
    if [ -n "${base-}" ]; then
        scancel --me
        cd /
        rm -rf "$base"
    fi
}

# All that slurmctld knows, ended or not.
known_jobs() {
    scontrol -o show job | sed -n 's/^\(JobId=[0-9]*\) .*/\1/p'
}

fault() {
    failures+=("$1"$'\n    '"in: ${*:2}"$'\n    '"said: $(cat "$base/err")")
}

# try STATUS WANT COMMAND...: runs COMMAND, which must end with STATUS (any: 1 or 255) and print
# nothing but one line "dt-tune: WANT" (a glob) on stderr, warnings aside, and leave no file. An empty
# WANT: Slurm's own words, whatever they are.
try() {
    local want=$2 status=0 line lines=() before=(*)
    "${as[@]}" timeout 60 "${@:3}" </dev/null >"$base/out" 2>"$base/err" || status=$?
    while IFS= read -r line || [ -n "$line" ]; do
        [[ $line == 'dt-tune: warning: '* ]] || lines+=("$line")
    done <"$base/err"
    local after=(*) temporary=("$TMPDIR"/*)
    [ "$status" = "$1" ] || [[ $1$status =~ ^any(1|255)$ ]] || fault "exit status $status, not $1" "${@:3}"
    [ ! -s "$base/out" ] || fault "it printed $(head -c 200 "$base/out")" "${@:3}"
    [ "${before[*]}" = "${after[*]}" ] || fault "it left files: ${after[*]}" "${@:3}"
    [ ${#temporary[@]} = 0 ] || fault "it left ${temporary[*]}" "${@:3}"
    [ -n "$want" ] || return 0
    [ ${#lines[@]} = 1 ] || fault "${#lines[@]} lines, not one" "${@:3}"
    # A plugin's own words come behind "sbatch: error: ".
    # shellcheck disable=SC2053
    [[ ${lines[0]#s*: error: } == "dt-tune: "$want ]] || fault "not \"dt-tune: $want\"" "${@:3}"
}

# row WANT ARGUMENT...: a submission that both refuse in the same words.
row() {
    rows=$((rows + 1))
    try 2 "$1" dt-sbatch "${@:2}"
    try 1 "$1" sbatch "${@:2}"
}

# script WANT ARGUMENT...: the same, but sbatch finds the fault before any plugin is asked.
script() {
    rows=$((rows + 1))
    try 2 "$1" dt-sbatch --dt-tune "${@:2}"
    try any "" sbatch --dt-tune "${@:2}"
}

# spec WANT TEXT: a SPEC with that text; WANT begins behind the file's name.
spec() {
    printf '%s' "$2" >spec.json
    row "spec.json:$1" --dt-tune=spec.json train.sh
}

# Fails with all the rows that failed, or if there are fewer rows than $1.
report() {
    local failure
    for failure in "${failures[@]}"; do
        printf '%s\n' "$failure"
    done
    echo "$rows rows, ${#failures[@]} faults"
    [ ${#failures[@]} = 0 ]
    [ "$rows" -ge "$1" ]
    [ "$(squeue -h | wc -l)" = 0 ]
    [ "$(known_jobs)" = "$jobs" ]
}

@test "SPEC: the file" {
    row '--dt-tune: nowhere.json: No such file*' --dt-tune=nowhere.json train.sh
    mkdir folder
    row '--dt-tune: folder: is a directory, a file is needed*' --dt-tune=folder train.sh
    head -c 2097152 /dev/zero | tr '\0' ' ' >large.json
    row '--dt-tune: large.json: larger than the limit of 1024 KiB*' --dt-tune=large.json train.sh
    head -c 3000 /bin/sh >binary.json
    row '--dt-tune: binary.json: holds a NUL byte*' --dt-tune=binary.json train.sh
    printf '{"dt": {}}\0{}' >nul.json
    row '--dt-tune: nul.json: holds a NUL byte*' --dt-tune=nul.json train.sh
    row "--dt-tune: the file's name is missing; write *" --dt-tune= train.sh
    printf '#!/bin/sh\n#SBATCH -n2\n#SBATCH --dt-tune=nowhere.json\nsleep 300\n' >named.sh
    row 'named.sh:3: --dt-tune: nowhere.json: No such file*' named.sh
    spec '1: not valid JSON: *' ''
    spec '1: not valid JSON: *' '   '
    printf '{"hyperparameters": {"a": [%s]}}' "$(seq -s, 20000)" >long.json
    rows=$((rows + 1))
    try 1 'the study takes * bytes, the limit is 65535: *' sbatch --dt-tune=long.json train.sh
    report 10
}

@test "SPEC: unreadable" {
    echo '{}' >spec.json
    chmod 0 spec.json
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        "${as[@]}" test -x "$DT_BUILD/dt-tune" || skip "an ordinary user cannot reach the build tree"
    fi
    row '--dt-tune: spec.json: Permission denied*' --dt-tune=spec.json train.sh
    report 1
}

@test "SPEC: JSON" {
    spec '1: not valid JSON: *' 'lr = 0.1'
    spec '2: not valid JSON: *' $'{"dt":\n {"ps": 1,}}'
    spec '1: not valid JSON: *' '{"dt": {"ps": 1}} {}'
    spec '2: not valid JSON: *' $'{"dt": {"ps": 1},\n "search"'
    spec '2: not valid JSON: *' $'{"dt":\n  {"ps": "1'
    spec '1: not valid JSON: *' "{'dt': {}}"
    spec '1: dt.ps: a finite number is needed here' '{"dt": {"ps": NaN}}'
    spec '1: hyperparameters.x.high: a finite number *' '{"hyperparameters": {"x": {"low": 0, "high": Infinity}}}'
    spec '1: not valid JSON: *' $'\xef\xbb\xbf{}'
    spec '1: not valid JSON: *' '{"dt": {"ps": 01}}'
    spec ' SPEC must be *object*' '[1, 2]'
    spec ' SPEC must be *object*' '"dt"'
    spec ' *object*' 'null'
    spec '3: the key "ps" stands twice in one object*' $'{"dt": {\n"ps": 1,\n"ps": 2}}'
    spec '1: *hyperparameters* stands twice*' '{"hyperparameters": {"a": [1]}, "hyperparameters": {"b": [1]}}'
    spec '1: not valid JSON: *' "$(printf '[%.0s' {1..100})"
    spec '1: \\u0000 cannot *' '{"hyperparameters": {"a\u0000b": [1, 2]}}'
    spec '1: \\u0000 cannot *' '{"hyperparameters": {"a": ["x\u0000", "y"]}}'
    report 18
}

@test "SPEC: unknown keys, with the nearest" {
    spec '2: objectiv: *did you mean "objective"?' $'{"version": 1,\n"objectiv": {}}'
    spec '2: dt.worker: *did you mean "workers"?' $'{"dt": {"ps": 1,\n"worker": [1, 2]}}'
    spec '1: dt.ps.hgih: *did you mean "high"?' '{"dt": {"ps": {"low": 0, "hgih": 2}}}'
    spec '1: dt.gamma: unknown key; known are: ps, workers*' '{"dt": {"gamma": {"low": 0, "high": 1}}}'
    spec '2: hyperparameters.lr.logs: *did you mean "log"?' $'{"hyperparameters": {"lr":\n{"low": 1, "high": 2, "logs": true}}}'
    spec '1: objective.gaol: *did you mean "goal"?' '{"objective": {"metric": "time", "gaol": "minimize"}}'
    spec '1: target.atleast: *did you mean "at_least"?' '{"target": {"metric": "a", "atleast": 1}}'
    spec '1: search.algoritm: *did you mean "algorithm"?' '{"search": {"algoritm": "grid"}}'
    spec '1: replay.maps: *did you mean "map"?' '{"replay": {"objective": "t", "maps": {}}}'
    spec '1: replay.map.psx: *did you mean "ps"?' '{"dt": {"ps": 1}, "replay": {"objective": "t", "map": {"psx": "n"}}}'
    spec '1: : unknown key*' '{"": 1}'
    report 11
}

@test "SPEC: types" {
    spec '1: version: *version 1*' '{"version": 2}'
    spec '1: version: *' '{"version": "1"}'
    spec '1: version: *' '{"version": null}'
    local section
    spec '1: history: false or an object like {"key": *, this is a number' '{"history": 7}'
    spec '1: history.key: a string is needed here, this is an array*' '{"history": {"key": []}}'
    for section in dt hyperparameters objective target search replay; do
        spec "1: $section: an object is needed here, this is a number*" "{\"$section\": 7}"
        spec "1: $section: a value is needed here, this is null*" "{\"$section\": null}"
    done
    spec '1: constraints: an array of strings is needed here, this is a string*' '{"constraints": "ps < 2"}'
    spec '1: constraints*: an array of strings is needed here, this is a number*' '{"constraints": [1]}'
    spec '1: constraints: a value is needed here, this is null*' '{"constraints": null}'
    spec '1: candidates: a string is needed here, this is an array*' '{"candidates": []}'
    spec '1: layout: a string is needed here, this is a boolean*' '{"layout": true}'
    spec '1: dt.ps.low: a number is needed here, this is a string*' '{"dt": {"ps": {"low": "0", "high": 2}}}'
    spec '1: dt.ps.high: a value is needed here, this is null*' '{"dt": {"ps": {"low": 0, "high": null}}}'
    spec '1: dt.ps: *null*' '{"dt": {"ps": null}}'
    spec '1: dt.ps: *number*' '{"dt": {"ps": "two"}}'
    spec '1: dt.ps: *number*' '{"dt": {"ps": true}}'
    spec '1: dt.ps.choices: an array is needed here, this is a number*' '{"dt": {"ps": {"choices": 2}}}'
    spec '1: hyperparameters.x.choices: *' '{"hyperparameters": {"x": {"choices": [[1]]}}}'
    spec '1: hyperparameters.x.log: true or false is needed here, this is a number*' '{"hyperparameters": {"x": {"low": 1, "high": 2, "log": 1}}}'
    spec '1: hyperparameters.x.step: a number is needed here, this is a boolean*' '{"hyperparameters": {"x": {"low": 1, "high": 2, "step": true}}}'
    spec '1: hyperparameters.x.step: a value is needed here, this is null*' '{"hyperparameters": {"x": {"low": 1, "high": 2, "step": null}}}'
    spec '1: hyperparameters.x.type: a string is needed here, this is a number*' '{"hyperparameters": {"x": {"type": 1, "low": 1, "high": 2}}}'
    spec '1: hyperparameters.x.default: *' '{"hyperparameters": {"x": {"low": 1, "high": 2, "default": {}}}}'
    spec '1: objective.metric: a string is needed here, this is a number*' '{"objective": {"metric": 1}}'
    spec '1: objective.goal: a string is needed here, this is a boolean*' '{"objective": {"metric": "a", "goal": true}}'
    spec '1: target.at_least: a number is needed here, this is a string*' '{"target": {"metric": "a", "at_least": "1"}}'
    spec '1: search.seed: a whole number *' '{"search": {"seed": "x"}}'
    spec '1: search.parallel: a whole number *' '{"search": {"parallel": 1.5}}'
    spec '1: search.max_configs: a value is needed here, this is null*' '{"search": {"max_configs": null}}'
    spec '1: search.deadline: a string is needed here, this is a number*' '{"search": {"deadline": 90}}'
    spec '1: search.min_improve: a number of per cent is needed here, this is a string*' '{"search": {"min_improve": "2"}}'
    spec '1: replay.ok: an array of strings is needed here, this is a string*' '{"replay": {"objective": "t", "ok": "ok"}}'
    spec '1: replay.map.ps: the name of a column is needed here, this is a number*' '{"dt": {"ps": 1}, "replay": {"objective": "t", "map": {"ps": 1}}}'
    spec '1: replay.where.model: a string or a number is needed here, this is an array*' '{"replay": {"objective": "t", "where": {"model": []}}}'
    report 40
}

@test "SPEC: metrics" {
    spec '1: metrics: an object is needed here, this is an array*' '{"metrics": []}'
    spec '1: metrics.pattern: *did you mean "patterns"?' '{"metrics": {"pattern": {}}}'
    spec '1: metrics.patterns: an object is needed here, this is a string*' '{"metrics": {"patterns": "a=(.*)"}}'
    spec '1: metrics.patterns.a: a string is needed here, this is an object*' '{"metrics": {"patterns": {"a": {}}}}'
    spec '2: metrics.patterns.a: "a=(\[0-9]+" is no POSIX *Unmatched ( or \\(; write it like accuracy=(\[0-9.]+)' \
        $'{"metrics": {"patterns": {\n"a": "a=([0-9]+"}}}'
    spec '1: metrics.patterns.a: "a=\[0-9]+": one group is needed, *this has 0; write it like *' '{"metrics": {"patterns": {"a": "a=[0-9]+"}}}'
    spec '1: metrics.patterns.a: "(a|b)=(.*)": one group is needed, *this has 2; *' '{"metrics": {"patterns": {"a": "(a|b)=(.*)"}}}'
    spec '1: metrics.patterns.a: "a=(\\d+)": \\d has no meaning *; write 0-9 in brackets' '{"metrics": {"patterns": {"a": "a=(\\d+)"}}}'
    spec '1: metrics.patterns.a: *lazy repetition (\*?); *' '{"metrics": {"patterns": {"a": "a.*?=([0-9]+)"}}}'
    spec '1: metrics.patterns.time: no metric can have this name*' '{"metrics": {"patterns": {"time": "a=(.*)"}}}'
    spec '1: metrics.step: a string is needed here, this is a number*' '{"metrics": {"step": 1}}'
    report 11
}

@test "SPEC: domains" {
    spec '2: dt.ps: low (3) is above high (1)*' $'{"dt": {\n"ps": {"low": 3, "high": 1}}}'
    spec '1: dt.ps: -1 is too small, the least is 0*' '{"dt": {"ps": {"low": -1, "high": 1}}}'
    spec '1: dt.workers: 0 is too small, the least is 1*' '{"dt": {"workers": {"low": 0, "high": 4}}}'
    spec '1: dt.workers: 0 is too small, the least is 1*' '{"dt": {"workers": [0, 1]}}'
    spec '1: dt.worker_cpus: *whole*' '{"dt": {"worker_cpus": [1, 1.5]}}'
    spec '1: dt.workers: *whole*' '{"dt": {"workers": {"low": 1.5, "high": 4}}}'
    spec '1: dt.workers: whole numbers *' '{"dt": {"workers": {"type": "float", "low": 1, "high": 4}}}'
    spec '1: dt.workers: *too large*' '{"dt": {"workers": {"low": 1, "high": 1e300}}}'
    # json-c from 0.17 on refuses such a number itself
    spec '1: *too large*' '{"dt": {"workers": 100000000000000000000}}'
    spec '1: dt.worker_mem: *too large*' '{"dt": {"worker_mem": ["99999999T"]}}'
    spec '1: hyperparameters.x.high: a finite number is needed here*' '{"hyperparameters": {"x": {"low": 0, "high": 1e999}}}'
    spec '1: @(hyperparameters.x.high: |*too large)*' '{"hyperparameters": {"x": {"type": "int", "low": 0, "high": 100000000000000000000000}}}'
    spec '1: dt.ps: "high" is missing*' '{"dt": {"ps": {"low": 0}}}'
    spec '1: dt.ps: "low" is missing*' '{"dt": {"ps": {}}}'
    spec '1: dt.ps: give either choices or low and high*' '{"dt": {"ps": {"low": 0, "high": 1, "choices": [1]}}}'
    spec '1: dt.ps: the list of choices is empty*' '{"dt": {"ps": []}}'
    spec '1: dt.ps.choices: the list of choices is empty*' '{"dt": {"ps": {"choices": []}}}'
    spec '1: dt.ps.choices: the choice 1 stands twice*' '{"dt": {"ps": {"choices": [1, 2, 1]}}}'
    spec '1: dt.ps_mem: the choice * stands twice*' '{"dt": {"ps_mem": ["1G", "1024M"]}}'
    spec '1: hyperparameters.opt: the choice sgd stands twice*' '{"hyperparameters": {"opt": ["sgd", "adam", "sgd"]}}'
    spec '1: hyperparameters.opt: *all numbers or all strings*' '{"hyperparameters": {"opt": ["sgd", 1]}}'
    spec '1: hyperparameters.opt: *all numbers or all strings*' '{"hyperparameters": {"opt": [1, true]}}'
    spec '1: hyperparameters.opt: *control character*' '{"hyperparameters": {"opt": ["a\nb", "adam"]}}'
    spec '1: dt.ps_mem: *all sizes as strings*' '{"dt": {"ps_mem": [1024, "2G"]}}'
    spec '1: dt.ps_mem: "2 GB" is no size; write it like*' '{"dt": {"ps_mem": ["2 GB"]}}'
    spec '1: hyperparameters.x.type: "real" is not a type; *' '{"hyperparameters": {"x": {"type": "real", "low": 0, "high": 1}}}'
    spec '1: hyperparameters.x.type: a categorical *' '{"hyperparameters": {"x": {"type": "categorical", "low": 0, "high": 1}}}'
    spec '1: hyperparameters.x.type: *choices*' '{"hyperparameters": {"x": {"type": "int", "choices": ["a"]}}}'
    spec '1: hyperparameters.x: low and high of an int *' '{"hyperparameters": {"x": {"type": "int", "low": 0.5, "high": 1}}}'
    spec '1: hyperparameters.x.step: the step must be above 0*' '{"hyperparameters": {"x": {"low": 0, "high": 9, "step": 0}}}'
    spec '1: hyperparameters.x.step: the step must be above 0*' '{"hyperparameters": {"x": {"low": 0.5, "high": 9, "step": -0.5}}}'
    spec '1: hyperparameters.x.step: the step must be *whole for an int*' '{"hyperparameters": {"x": {"low": 0, "high": 9, "step": 1.5}}}'
    spec '1: hyperparameters.x.log: a log scale needs numbers above 0*' '{"hyperparameters": {"x": {"low": 0, "high": 1, "log": true}}}'
    spec '1: hyperparameters.x.log: a log scale is for numbers*' '{"hyperparameters": {"x": {"choices": ["a", "b"], "log": true}}}'
    spec '1: hyperparameters.x.default: "c" is not one of the choices*' '{"hyperparameters": {"x": {"choices": ["a", "b"], "default": "c"}}}'
    spec '1: hyperparameters.x.default: *' '{"hyperparameters": {"x": {"choices": [1, 2], "default": 3}}}'
    spec '1: hyperparameters.x.default: *' '{"hyperparameters": {"x": {"low": 1, "high": 2, "default": null}}}'
    spec '1: dt.ps.default: the job itself says*' '{"dt": {"ps": {"low": 0, "high": 2, "default": 1}}}'
    report 38
}

@test "SPEC: names" {
    spec '1: hyperparameters.learning-rate: a name must consist of letters, digits and _*' '{"hyperparameters": {"learning-rate": [1, 2]}}'
    spec '1: hyperparameters.2x: a name must *' '{"hyperparameters": {"2x": [1, 2]}}'
    spec '1: hyperparameters.: a name must *' '{"hyperparameters": {"": [1, 2]}}'
    spec '1: hyperparameters.größe: a name must *' '{"hyperparameters": {"größe": [1, 2]}}'
    spec ' hyperparameters.a?b: a name must *' '{"hyperparameters": {"a\nb": [1, 2]}}'
    spec '1: hyperparameters.ps: this belongs under "dt"*' '{"hyperparameters": {"ps": [1, 2]}}'
    spec '1: hyperparameters.worker_cpus: this belongs under "dt"*' '{"hyperparameters": {"worker_cpus": [1, 2]}}'
    spec '1: hyperparameters.layout: this name is taken*' '{"hyperparameters": {"layout": ["a", "b"]}}'
    spec '1: hyperparameters.cluster_nodes: this name is taken*' '{"hyperparameters": {"cluster_nodes": [1, 2]}}'
    spec '1: hyperparameters._pi: this name is taken*' '{"hyperparameters": {"_pi": [1, 2]}}'
    spec '1: dt.lr: unknown key; known are: *' '{"dt": {"lr": {"low": 0.1, "high": 1}}}'
    report 11
}

@test "SPEC: objective, target, search, layout, replay" {
    spec '1: objective: "metric" is missing: *' '{"objective": {}}'
    spec '1: objective: "goal" is missing: *' '{"objective": {"metric": "accuracy"}}'
    spec '1: objective.goal: "max" is not a goal; minimize or maximize' '{"objective": {"metric": "a", "goal": "max"}}'
    spec '1: objective.goal: time can only be minimized*' '{"objective": {"metric": "time", "goal": "maximize"}}'
    spec '1: objective.goal: throughput can only be maximized*' '{"objective": {"metric": "throughput", "goal": "minimize"}}'
    spec '1: objective.metric: an empty value*' '{"objective": {"metric": "", "goal": "minimize"}}'
    spec '1: target: "metric" and one of *' '{"target": {"metric": "a"}}'
    spec '1: target: "metric" and one of *' '{"target": {"at_least": 1}}'
    spec '1: target: "metric" and one of *' '{"target": {"metric": "a", "at_least": 1, "at_most": 2}}'
    spec '1: target.metric: an empty value*' '{"target": {"metric": "", "at_least": 1}}'
    spec '2: search.algorithm: "baies" is not an algorithm; *' $'{"search":\n{"algorithm": "baies"}}'
    spec '1: search.algorithm: "gird" is not an algorithm; did you mean grid*' '{"search": {"algorithm": "gird"}}'
    spec '1: search.deadline: "soon" is not a time; write it *' '{"search": {"deadline": "soon"}}'
    spec '1: search.deadline: "0" *' '{"search": {"deadline": "0"}}'
    spec '1: search.deadline: "1:-2" *' '{"search": {"deadline": "1:-2"}}'
    spec '1: search.max_configs: a whole number between 1 *' '{"search": {"max_configs": 0}}'
    spec '1: search.max_configs: a whole number between 1 *' '{"search": {"max_configs": -5}}'
    spec '1: @(search.parallel: a whole number between 1 |*too large)*' '{"search": {"parallel": 99999999999999999999}}'
    spec '1: search.seed: a whole number between 0 *' '{"search": {"seed": -1}}'
    spec '1: search.grid_levels: a whole number between 2 *' '{"search": {"grid_levels": 1}}'
    spec '1: search.min_improve: per cent between 0 and 100 *' '{"search": {"min_improve": -1}}'
    spec '1: search.min_improve: per cent between 0 and 100 *' '{"search": {"min_improve": 200}}'
    spec '1: search.parallel: a whole number between 1 *' '{"search": {"parallel": "all"}}'
    spec '1: launch.coordinator: "cheif" is not a coordinator; there are chief *' '{"launch": {"coordinator": "cheif"}}'
    spec '1: launch.coordinater: *did you mean "coordinator"?' '{"launch": {"coordinater": "chief"}}'
    spec '1: launch: an object like *' '{"launch": "chief"}'
    spec '1: layout: "hte" is not a layout; *' '{"layout": "hte"}'
    spec '1: replay: "objective" is missing*' '{"replay": {}}'
    spec '1: replay.goal: "up" is not a goal; *' '{"replay": {"objective": "t", "goal": "up"}}'
    report 29
}

@test "SPEC: constraints" {
    local dt='"dt": {"ps": {"low": 0, "high": 2}, "workers": {"low": 1, "high": 3}}, "hyperparameters": {"opt": ["sgd", "adam"]}'
    local expression
    while IFS='|' read -r want expression; do
        spec "2: constraint \"$want" "{$dt,"$'\n'"\"constraints\": [\"$expression\"]}"
    done <<'END'
ps +": *|ps +
ps < < 2": *|ps < < 2
": *|
(ps < 2": *|(ps < 2
workrs < 3": unknown name "workrs"; did you mean "workers"?|workrs < 3
nothing_like_it < 3": unexpected word "nothing_like_it"; the names here are ps, workers*|nothing_like_it < 3
opt == 'adm'": no parameter has the value "adm"; did you mean "adam"?|opt == 'adm'
opt == 'adam": the quote ' is not closed*|opt == 'adam
ps = 2": = sets a value; write == to compare*|ps = 2
ps < 2, workers < 2": *each as a constraint of its own*|ps < 2, workers < 2
ps and workers": unexpected word "and"; *&&*|ps and workers
f(ps) < 2": unexpected word "f"; *|f(ps) < 2
sin(ps, workers) < 2": *|sin(ps, workers) < 2
ps < 2;": *|ps < 2;
END
    spec '2: the search space is empty: 36 excluded by "ps > 5"; *' "{$dt,"$'\n"constraints": ["ps > 5"]}'
    spec '2: the search space is empty: *"ps > 1"*"ps < 1"*; *' "{$dt,"$'\n"constraints": ["ps > 1", "ps < 1"]}'
    report 16
}

@test "SPEC: conditions" {
    local when='"opt": ["sgd", "adam"], "m": {"low": 1, "high": 5,
"when": ' expression
    while IFS='|' read -r want expression; do
        spec "2: hyperparameters.m.when: condition \"$want" "{\"hyperparameters\": {$when\"$expression\"}}}"
    done <<'END'
opt ==": *|opt ==
otp == 1": unknown name "otp"; did you mean "opt"?|otp == 1
opt == 'adm'": no parameter has the value "adm"; did you mean "adam"?|opt == 'adm'
opt == 'adam": the quote ' is not closed*|opt == 'adam
opt = 1": = sets a value; write == to compare*|opt = 1
workers > 0, workers < 9": *join them by &&*|workers > 0, workers < 9
m > 2": it says when m has a value, so it cannot mention m; use other parameters|m > 2
opt == 'sgd' && opt == 'adam'": it holds for no values of the parameters, so m would never have one; loosen it, or take m out|opt == 'sgd' && opt == 'adam'
END
    spec '2: hyperparameters.m.when: a string is needed here, this is a boolean*' "{\"hyperparameters\": {${when}true}}}"
    spec '2: hyperparameters.m.when: a value is needed here, this is null*' "{\"hyperparameters\": {${when}null}}}"
    spec '2: hyperparameters.m.when: an empty value*' "{\"hyperparameters\": {$when\"\"}}}"
    spec '1: dt.ps.when: only hyperparameters take a condition*"constraints"*' '{"dt": {"ps": {"low": 0, "high": 1, "when": "workers > 1"}}}'
    spec '1: hyperparameters.m.when: conditions go round in a circle: m on n on m; take one of these out' '{"hyperparameters": {"m": {"low": 1, "high": 5, "when": "n > 1"}, "n": {"low": 1, "high": 5, "when": "m > 1"}}}'
    printf 'workers,opt,m\n1,adam,\n1,sgd,\n' >rows.csv
    spec "3: candidates: rows.csv:3: where opt == 'sgd': m: \"\" is not a number" "{\"hyperparameters\": {$when\"opt == 'sgd'\"}},
\"candidates\": \"rows.csv\"}"
    report 14
}

@test "SPEC: candidates" {
    local spec='{"dt": {"ps": {"low": 0, "high": 2}, "workers": {"low": 1, "high": 3}},
"candidates": "rows.csv"}'
    spec '2: candidates: rows.csv: No such file*' "$spec"
    mkdir rows.csv
    spec '2: candidates: rows.csv: is a directory*' "$spec"
    rmdir rows.csv
    : >rows.csv
    spec '2: candidates: rows.csv: *' "$spec"
    printf 'ps,worker\n0,1\n' >rows.csv
    spec '2: candidates: rows.csv: *"workers"*' "$spec"
    printf 'ps,workers\n' >rows.csv
    spec '2: candidates: rows.csv: *' "$spec"
    printf 'ps,workers\n0,1\n1,9\n' >rows.csv
    spec '2: candidates: rows.csv:3: workers: 9 is outside its domain*' "$spec"
    printf 'ps,workers\n0,1\nx,1\n' >rows.csv
    spec '2: candidates: rows.csv:3: ps: "x" is not a number*' "$spec"
    printf 'ps,workers\n0,1\n0\n' >rows.csv
    spec '2: candidates: rows.csv:3: *' "$spec"
    printf 'ps,workers\n0,1\n0,1,2\n' >rows.csv
    spec '2: candidates: rows.csv:3: *' "$spec"
    printf 'ps,ps,workers\n0,1,2\n' >rows.csv
    spec '2: candidates: rows.csv: two columns are named "ps"*' "$spec"
    printf 'ps,workers\n0,"1\n' >rows.csv
    spec '2: candidates: rows.csv:*' "$spec"
    printf 'ps,workers\n0,\n' >rows.csv
    spec '2: candidates: rows.csv:2: *' "$spec"
    head -c 3000 /bin/sh >rows.csv
    spec '2: candidates: rows.csv: *' "$spec"
    report 13
}

@test "options: ranges" {
    local value
    for value in 5-1 a-b 1,,2 ',' -1 1- 2x '1 2' 0x2 1-4:0 1-4:-1 1-2-3 1.5 1:2:3 ١ 99999999999999999999; do
        row "--dt-ps: \"$value\" is not a range; write it like *" --dt-tune "--dt-ps=$value" train.sh
    done
    row '--dt-ps: "" is not a range; write it like *' --dt-tune --dt-ps= train.sh
    row '--dt-ps: the choice 1 stands twice*' --dt-tune --dt-ps=1,1 train.sh
    row '--dt-workers: *0 is too small, the least is 1*' --dt-tune --dt-workers=0 train.sh
    row '--dt-workers: *0 is too small, the least is 1*' --dt-tune --dt-workers=0-4 train.sh
    row '--dt-workers: "-2" is not a range*' --dt-tune --dt-workers -2 train.sh
    printf '#!/bin/sh\n#SBATCH --dt-tune\n#SBATCH --dt-workers=4-1\nsleep 300\n' >wrong.sh
    row 'wrong.sh:3: --dt-workers: "4-1" is not a range*' wrong.sh
    # Right in SPEC, wrong in the option: the option is named.
    echo '{"dt": {"workers": {"low": 1, "high": 2}}}' >spec.json
    row '--dt-workers: *0 is too small*' --dt-tune=spec.json --dt-workers=0-2 train.sh
    report 23
}

@test "options: hyperparameters" {
    local value
    for value in lr =1..2 lr= ''; do
        row "--dt-param: \"$value\": write it like *" --dt-tune "--dt-param=$value" train.sh
    done
    while IFS='|' read -r value want; do
        row "--dt-param: \"$value\": $want" --dt-tune "--dt-param=$value" train.sh
    done <<'END'
lr=1..|*is not a number*
lr=..2|*is not a number*
lr=a..b|"a" is not a number*
lr=1..2x|"2x" is not a number*
lr=1..2..3|*is not a number*
lr=5..1|low (5) is above high (1)*
lr=1..2:lgo|*after the colon comes log, log2 or a step*
lr=1..2:|*after the colon comes log, log2 or a step*
lr=1..2:0|*the step must be above 0*
lr=1..2:-1|*the step must be above 0*
lr=0..1:log|*a log scale needs numbers above 0*
lr=-1..1:log|*a log scale needs numbers above 0*
lr=0.1..1:log2|*must be whole, above 0*
lr=0..8:log2|*must be whole, above 0*
lr=8..1:log2|*in order*
lr=nan..1|"nan" is not a number*
lr=0..inf|"inf" is not a number*
lr=0..1e999|"1e999" is not a number*
opt={}|*is not a list of choices*
opt={a|*is not a list of choices*
opt=a}|*is not a list of choices*
opt={a,,b}|*is not a list of choices*
opt={,a}|*is not a list of choices*
opt={a,a}|*stands twice*
opt={1,1.0}|*stands twice*
2x=1..2|a name must *
learning-rate=1..2|a name must *
l r=1..2|a name must *
ps=1..2|this belongs under "dt"*
layout={a,b}|this name is taken*
END
    row '--dt-param: "a?b=1..2": *' --dt-tune $'--dt-param=a\nb=1..2' train.sh
    row '--dt-param: "opt={a?b,c}": *' --dt-tune $'--dt-param=opt={a\nb,c}' train.sh
    printf '#!/bin/sh\n#SBATCH --dt-tune\n#SBATCH --dt-param=lr=5..1\nsleep 300\n' >wrong.sh
    row 'wrong.sh:3: --dt-param: "lr=5..1": low (5) is above high (1)*' wrong.sh
    report 37
}

@test "options: objective, target, limits, layout" {
    local value
    for value in speed min '' time:min MIN:loss; do
        row "--dt-objective: \"$value\"*METRIC*" --dt-tune "--dt-objective=$value" train.sh
    done
    row '--dt-objective: "max:": the metric*is missing*' --dt-tune --dt-objective=max: train.sh
    for value in acc '>=1' acc=1 'acc>1' 'acc>=' 'acc>=x' 'acc>=1>=2' 'acc>=nan' 'acc>=1e999' ''; do
        row "--dt-target: \"$value\": write it like *" --dt-tune "--dt-target=$value" train.sh
    done
    for value in 0 -1 x 1x 1.5 '' 99999999999999999999 1000000001 ' 1' +; do
        row "--dt-max-configs: \"$value\": a whole number *" --dt-tune "--dt-max-configs=$value" train.sh
        row "--dt-parallel: \"$value\": a whole number *" --dt-tune "--dt-parallel=$value" train.sh
    done
    for value in x -1 101 nan '' 2x ':5' 2%%; do
        row "--dt-min-improve: \"$value\": write it like *" --dt-tune "--dt-min-improve=$value" train.sh
    done
    for value in 0 x ''; do
        row "--dt-min-improve: \"2:$value\": *" --dt-tune "--dt-min-improve=2:$value" train.sh
    done
    for value in x '' 0 -5 1:2:3:4 1-; do
        row "--dt-deadline: \"$value\" is not a time; *" --dt-tune "--dt-deadline=$value" train.sh
    done
    row '--dt-layout: an empty value*' --dt-tune --dt-layout= train.sh
    for value in hte HET; do
        row "--dt-layout: \"$value\" is not a layout; *" --dt-tune "--dt-layout=$value" train.sh
    done
    row '--dt-parallel: "all": *' --dt-tune --dt-parallel=all train.sh
    printf '#!/bin/sh\n#SBATCH --dt-tune\n#SBATCH --dt-parallel=0\nsleep 300\n' >wrong.sh
    row 'wrong.sh:3: --dt-parallel: "0": *' wrong.sh
    report 55
}

@test "options: resume, dry run, unknown ones, without --dt-tune" {
    mkdir plain
    row '--dt-resume: "nowhere": No such file*' --dt-resume=nowhere train.sh
    row '--dt-resume: "plain" is not the folder of a study*' --dt-resume=plain train.sh
    row '--dt-resume: *train.sh*' --dt-resume=train.sh train.sh
    row '--dt-resume: "dt-tune-4711": No such file*' --dt-resume=4711 train.sh
    row '--dt-resume: *' --dt-resume= train.sh
    printf '#!/bin/sh\n#SBATCH --dt-resume=nowhere\nsleep 300\n' >wrong.sh
    row 'wrong.sh:2: --dt-resume: "nowhere": No such file*' wrong.sh
    row '--dt-ps needs --dt-tune*' --dt-ps=1 train.sh
    row '--dt-param needs --dt-tune*' --dt-param=lr=1..2 train.sh
    row '--dt-dry-run needs --dt-tune*' --dt-dry-run train.sh
    printf '#!/bin/sh\n#SBATCH --dt-workers=1\nsleep 300\n' >wrong.sh
    row '*--dt-workers needs --dt-tune*' wrong.sh
    row '--dt-ps: "5-1" is not a range*' --dt-tune --dt-dry-run --dt-ps=5-1 train.sh
    script '*--dt-wrokers*did you mean --dt-workers?*' --dt-wrokers=1 train.sh
    script '*--dt-ps*' --dt-ps
    script '*--dt-dry-run takes no argument*' --dt-dry-run=1 train.sh
    script '*short for several options*' --dt-m=1 train.sh
    report 15
}

@test "options: apply" {
    local no_study='--dt-apply: no study of train.sh is known in * ?the program counts*; tune it first, or give --dt-apply=STUDY*'
    row "$no_study" --dt-apply train.sh
    row "$no_study" --dt-apply --dt-objective=cost train.sh
    row "$no_study" --dt-apply --dt-dry-run train.sh
    printf '#!/bin/sh\n#SBATCH --dt-apply\nsleep 300\n' >wrong.sh
    row 'wrong.sh:2: --dt-apply: no study of wrong.sh is known in *' wrong.sh
    row '--dt-apply: "nowhere" is neither a study?s folder nor one of those in *; dt-tune history lists them' --dt-apply=nowhere train.sh
    row '--dt-apply: the study is missing; write --dt-apply=STUDY*' --dt-apply= train.sh
    mkdir dt-tune-7
    echo >dt-tune-7/journal.jsonl
    row '--dt-apply: dt-tune-7: the study has found no configuration*' --dt-apply=7 train.sh
    row '--dt-apply: dt-tune-7: the study has found no configuration*' --dt-apply=dt-tune-7 train.sh
    echo '{"workers": 0}' >dt-tune-7/best.json
    row 'the best configuration of study dt-tune-7: dt.workers: 0 is too small*' --dt-apply=7 train.sh
    echo '[]' >dt-tune-7/best.json
    row '--dt-apply: dt-tune-7/best.json: *object*' --dt-apply=7 train.sh
    echo '{"workers": 1000}' >dt-tune-7/best.json
    row '--dt-apply: the configuration of study dt-tune-7, workers=1000, cannot run here: workers: more CPUs*' --dt-apply=7 train.sh
    local other
    for other in --dt-tune --dt-resume=7 --dt-ps=1 --dt-workers=1 --dt-param=lr=1..2 --dt-max-configs=2 --dt-layout=het --dt-parallel=2; do
        row "--dt-apply and ${other%%=*} exclude each other: *" --dt-apply $other train.sh
    done
    printf '#!/bin/sh\n#SBATCH --dt-tune\n#SBATCH --dt-apply\nsleep 300\n' >wrong.sh
    row 'wrong.sh:3: --dt-apply and wrong.sh:2: --dt-tune exclude each other: *' wrong.sh
    row '*--array: *' --dt-apply --array=0-3 train.sh
    row '*begins another component*' --dt-apply -n1 : -n2 train.sh
    rows=$((rows + 3))
    try 2 '--dt-apply and --here exclude each other: *' dt-sbatch --dt-apply --here train.sh
    try 2 '--dt-apply and --dt-config exclude each other: *' dt-sbatch --dt-apply --dt-config=c.json train.sh
    try 1 '--dt-apply works with sbatch only; put the job into a script' srun --dt-apply hostname
    script '*--dt-aply*did you mean --dt-apply?*' --dt-aply train.sh
    report 25
}

@test "scripts" {
    script 'nowhere.sh: no such script*' nowhere.sh
    mkdir folder
    script 'folder: *' folder
    script '/bin: is a directory*' /bin
    script '/bin/ls: is a program*' /bin/ls
    printf '#!/bin/sh\r\nsleep 300\r\n' >crlf.sh
    script 'crlf.sh:1: has DOS line ends*dos2unix*' crlf.sh
    printf '\xef\xbb\xbf#!/bin/sh\nsleep 300\n' >bom.sh
    script 'bom.sh:1: begins with a byte order mark*' bom.sh
    echo 'sleep 300' >plain.sh
    script 'plain.sh:1: *begin it with #!/bin/bash*' plain.sh
    : >empty.sh
    script 'empty.sh: the batch script is empty*' empty.sh
    printf '\n \n' >blank.sh
    script 'blank.sh: *only blanks*' blank.sh
    printf '#!/bin/sh\nsleep 300\n\0' >nul.sh
    script 'nul.sh: holds a NUL byte*' nul.sh
    { cat train.sh; head -c 5242880 /dev/zero | tr '\0' '#'; } >huge.sh
    row '*huge.sh: larger than the limit of 4096 KiB*' --dt-tune huge.sh
    chmod 0 plain.sh
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    fi
    if "${as[@]}" test -x "$DT_BUILD/dt-tune"; then
        script 'plain.sh: cannot read the script: Permission denied*' plain.sh
    fi
    report 11
}

# lines WANT LINE...: a script with these #SBATCH lines.
lines() {
    { echo '#!/bin/sh'; printf '#SBATCH %s\n' "${@:2}"; echo 'sleep 300'; } >wrong.sh
    script "wrong.sh:$1" wrong.sh
}

# The same where sbatch itself has nothing against it.
our_lines() {
    { echo '#!/bin/sh'; printf '#SBATCH %s\n' --dt-tune "${@:2}"; echo 'sleep 300'; } >wrong.sh
    row "wrong.sh:$1" wrong.sh
}

@test "#SBATCH lines" {
    lines '2: *--ntaks*did you mean --ntasks?*' --ntaks=2
    lines '3: *"nodes=2" is no option: write --nodes=2*' -n2 nodes=2
    lines '2: *--ntasks=0: a whole number above 0*' --ntasks=0
    lines '2: *--ntasks=two: a whole number above 0*' --ntasks=two
    lines '2: *--nodes=4-2: a number of nodes*' --nodes=4-2
    lines '2: *--cpus-per-task=-1: a whole number above 0*' --cpus-per-task=-1
    lines '2: *--mem=4X: an amount*' --mem=4X
    lines '2: *--time=soon: a time is needed*' --time=soon
    lines '2: *--time: its argument is missing*' --time
    lines '2: the quote *' '--comment="open'
    lines '3: --mem-per-cpu and --mem (wrong.sh:2) exclude each other*' --mem=1G --mem-per-cpu=1G
    lines '2: *is no option: remove it*' '-n2 (two tasks)'
    our_lines '3: *--array: a job array cannot be tuned*' --array=0-3
    our_lines '3: "hetjob*' hetjob -n2
    our_lines '3: *--test-only: *--dt-dry-run*' --test-only
    our_lines '3: *--clusters: *' --clusters=other
    printf '#!/bin/sh\n#SBATCH --dt-tune\n#PBS -l nodes=2\nsleep 300\n' >wrong.sh
    row 'wrong.sh:3: sbatch would translate*' wrong.sh
    report 17
}

@test "kinds of jobs that cannot be tuned" {
    row '*--array: a job array cannot be tuned*' --array=0-3 --dt-tune train.sh
    SBATCH_ARRAY_INX=0-3 row 'SBATCH_ARRAY_INX: *a job array cannot be tuned*' --dt-tune train.sh
    row '*begins another component*' --dt-tune -n1 : -n2 train.sh
    row '*begins another component*' -n1 : --dt-tune -n2 train.sh
    row '*--test-only*' --test-only --dt-tune train.sh
    SBATCH_TIMELIMIT=soon script '*SBATCH_TIMELIMIT=soon: a time is needed*' train.sh
    script '*cannot stand beside --wrap*' --wrap hostname train.sh
    rows=$((rows + 2))
    try 1 '--dt-tune works with sbatch only; put the job into a script' srun --dt-tune hostname
    try 1 '--dt-ps works with sbatch only; put the job into a script' salloc --dt-ps=1 true
    report 9
}

@test "jobs that no node can run" {
    local empty='the search space is empty: '
    local submitted='train.sh: the job as submitted ('
    row "$empty"'101 excluded by "workers: *"; widen the ranges*cluster_cpus 16*' --dt-tune --dt-workers=100-200 train.sh
    row "$empty"'4 excluded by "workers: *' --dt-tune --dt-workers=1-4 --cpus-per-task=64 train.sh
    row "$empty"'4 excluded by "workers: *' --dt-tune --dt-workers=1-4 --mem-per-cpu=1T train.sh
    row "$empty"'4 excluded by "workers: *node_mem 4096*' --dt-tune --dt-workers=1-4 --mem=1T train.sh
    row "$empty"'4 excluded by "layout packed: *"layout het: *' --dt-tune --dt-ps=1 --dt-workers=1-4 --mem=1T train.sh
    row "$empty"'4 excluded by "workers: *node_gpus 0*' --dt-tune --dt-workers=1-4 --gpus-per-task=1 train.sh
    row "$empty"'1 excluded by "layout het: *' --dt-tune --dt-layout=het --dt-workers=1 --dt-ps=1 --exclude='h[2-4]' train.sh
    row "$empty"'4 excluded by "workers: *' --dt-tune --dt-workers=1-4 --gres=gpu:1 train.sh
    row "$empty"'4 excluded by "workers: *' --dt-tune --dt-workers=1-4 --gpus=2 train.sh
    row '--tmp: 1048576 MiB of disk, and no node of partition main *; ask for less*' --dt-tune --dt-workers=1-4 --tmp=1T train.sh
    row "$submitted"'1000 tasks*ask for less*' --dt-tune --ntasks=1000 train.sh
    row '--nodes: 100 nodes, and partition main has 4 *; ask for less*' --dt-tune --nodes=100 train.sh
    row '--time: 60 minutes, and partition short allows 10; *' --dt-tune --time=1:00:00 --partition=short train.sh
    row '--partition: there is no partition "nowhere"; there are: main, short*' --dt-tune --partition=nowhere train.sh
    row 'partition main has no node that is up and fits *--constraint*' --dt-tune --constraint=quick train.sh
    row 'partition main has no node that is up and fits *--constraint*' --dt-tune '--constraint=fast&slow' train.sh
    row 'partition main has no node that is up and fits *--exclude*' --dt-tune --exclude='h[1-4]' train.sh
    row '--nodelist: there is no node "h9" in partition main; its nodes are h*' --dt-tune --nodelist=h9 train.sh
    our_lines '3: --nodelist: there is no node "h7" *' '--nodelist=h[1,7]'
    our_lines '3: --nodes: 9 nodes, *' --nodes=9
    printf '{"dt": {"worker_mem": ["100G"]}}' >spec.json
    row "spec.json: $empty"'1 excluded by "workers: *' --dt-tune=spec.json train.sh
    printf '{"dt": {"worker_gpus": [1]}}' >spec.json
    row "spec.json: $empty"'1 excluded by "workers: *' --dt-tune=spec.json train.sh
    printf '{"dt": {"worker_tmp": ["1T"]}}' >spec.json
    row "spec.json: $empty"'1 excluded by "workers: *' --dt-tune=spec.json train.sh
    report 23
}

# config WANT TEXT [ARGUMENT...]: dt-sbatch with that configuration; WANT begins behind the option.
config() {
    printf '%s' "$2" >c.json
    rows=$((rows + 1))
    try 2 "--dt-config: $1" dt-sbatch --dt-config=c.json "${@:3}" train.sh
}

@test "dt-sbatch --dt-config" {
    config 'c.json:1: not valid JSON: *' ''
    config 'c.json:1: not valid JSON: *' '{"ps": 1'
    config 'c.json:1: the key "ps" stands twice *' '{"ps": 1, "ps": 2}'
    config 'c.json: a configuration must be an object like *' '[1]'
    config 'c.json: hyperparameters.gamma-x: a name must *' '{"gamma-x": 1}'
    config 'c.json: dt.ps: -1 is too small*' '{"ps": -1}'
    config 'c.json: dt.ps: "two" is no number*' '{"ps": "two"}'
    config 'c.json: dt.ps: *null*' '{"ps": null}'
    config '*"ps": * is not one of its values*' '{"ps": [1, 2]}'
    config 'c.json: dt.ps: whole numbers *' '{"ps": 1.5}'
    config 'c.json: dt.workers: 0 is too small*' '{"workers": 0}'
    config 'c.json: layout: choose "het" or "packed"' '{"layout": "steps"}'
    config 'c.json: layout: choose "het" or "packed"' '{"ps": 1, "layout": 1}'
    rows=$((rows + 6))
    local empty='*the search space is empty: *'
    printf '{"ps": 1, "workers": 1000}' >c.json
    try 2 "$empty" dt-sbatch --dt-config=c.json train.sh
    printf '{"layout": "het", "ps": 3, "workers": 13}' >c.json
    try 2 '*' dt-sbatch --dt-config=c.json train.sh
    printf '{"worker_mem": "100G"}' >c.json
    try 2 "$empty" dt-sbatch --dt-config=c.json train.sh
    printf '{"worker_gpus": 1}' >c.json
    try 2 "$empty" dt-sbatch --dt-config=c.json train.sh
    try 2 '--dt-config: nowhere.json: No such file*' dt-sbatch --dt-config=nowhere.json train.sh
    try 2 "--dt-config: the file's name is missing; write *" dt-sbatch --dt-config= train.sh
    report 19
}
