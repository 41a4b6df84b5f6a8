#!/usr/bin/env bats
# The manuals: there is one for every program, plugin and file, they are well-formed, and they know every option and key.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/.."
    pages=(tools/*.[157] plugin/*.8)
}

# The text of a page, with plain hyphens.
words() {
    sed 's/\\-/-/g' "$@"
}

# missing PAGE WORD...: prints the words that a page does not have.
missing() {
    local page=$1 word
    shift
    for word; do
        words "$page" | grep -qE -- "(^|[^a-zA-Z-])$word([^a-zA-Z-]|$)" || echo "$page: $word"
    done
}

@test "there is a manual for everything, and each is installed" {
    for page in tools/dt-{tune,sbatch,launch}.1 tools/dt-tune.conf.5 plugin/{spank,job_submit}_dt_tune.8; do
        [ -s $page ]
    done
    for page in "${pages[@]}"; do
        grep -q -- "$page" tools/local.mk
        section=${page##*.} name=$(basename "$page" ".${page##*.}")
        grep -qE "^\.TH ${name^^} $section " <(words "$page")
        grep -qE "^$name - " <(words "$page")
    done
}

@test "no manual has anything that groff or man warn of" {
    command -v groff >/dev/null || skip "groff is not installed"
    for page in "${pages[@]}"; do
        run groff -t -man -Tutf8 -ww -z "$page"
        [ "$output" = "" ]
    done
    command -v man >/dev/null || skip "man is not installed"
    for width in 80 100 140; do
        for page in "${pages[@]}"; do
            run bash -c "MANWIDTH=$width LC_ALL=C.UTF-8 man --warnings -l $page 2>&1 >/dev/null"
            echo "$output"
            [ "$output" = "" ]
        done
    done
}

@test "what a manual refers to exists" {
    for name in $(words "${pages[@]}" | grep -oE '(dt-[a-z.]+|[a-z_]+_dt_tune) ?\([158]\)' | tr -d ' ' | sort -u); do
        page=${name%(*} section=${name#*(}
        [ -e "tools/$page.${section%)}" ] || [ -e "plugin/$page.${section%)}" ]
    done
}

@test "the manuals know every option of sbatch, every command and every key" {
    # shellcheck disable=SC2046
    run missing tools/dt-sbatch.1 $(sed -nE 's/^    \{"(dt-[a-z-]+)", ("|0).*/--\1/p' plugin/options.h) --here --dt-config
    [ "$output" = "" ]
    # shellcheck disable=SC2046
    run missing tools/dt-tune.1 $(sed -nE 's/^    \{"([a-z]+)", cmd_.*/\1/p' tools/dt-tune.c | grep -vxE 'prepare|run')
    [ "$output" = "" ]
    keys=$(sed -nE 's/^    \{"([A-Za-z]+)", [A-Z]+, offsetof.*/\1/p' src/conf/conf.c)
    [ "$(wc -l <<<"$keys")" -ge 11 ]
    # shellcheck disable=SC2086
    run missing tools/dt-tune.conf.5 $keys
    [ "$output" = "" ]
    # shellcheck disable=SC2086
    run missing etc/dt-tune.conf.example $keys
    [ "$output" = "" ]
}
