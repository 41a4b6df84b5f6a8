#!/bin/bash
# A search of your own in a few lines of shell: this script says which hyperparameters to try, dt-tune
# runs each as a job and finds the number of workers that is fastest. Not a job itself: run it where sbatch works.
#
#     ./serve.sh ddp.sh
set -eu

coproc SERVE {
    dt-tune serve --dt-ps=0 --dt-workers=1-4 --dt-param=lr=0.001..1 --dt-objective=max:accuracy \
        --dt-parallel=2 --dt-max-configs=100 "$@"
}
pid=$SERVE_PID
exec {answers}<&"${SERVE[0]}" {requests}>&"${SERVE[1]}"

ask() {
    printf '{"id": "lr=%s", "hyperparameters": {"lr": %s}}\n' "$1" "$1" >&"$requests"
}

# field NAME LINE: a number or text of an answer, without jq
field() {
    sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" <<<"$2"
}

for lr in 0.01 0.02 0.04; do
    ask $lr
done
echo '{"end": true}' >&"$requests"

while read -r line <&"$answers"; do
    case $line in
    *'"event":"ended"'*)
        echo "$(field id "$line"): $(field status "$line"), accuracy $(field value "$line")," \
            "$(field duration_s "$line") s with $(field workers "$line") workers"
        ;;
    *'"event":"refused"'*) echo "$line" >&2 ;;
    *'"event":"finished"'*) echo "best: ${line#*\"best\":}" ;;
    esac
done
wait "$pid"
