# What tests/demo and tests/all share: packages, and a build. Sourced, from bash.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

BUILD_PACKAGES="gcc make autoconf automake libtool pkg-config libslurm-dev libjson-c-dev libgsl-dev
    libhwloc-dev libmuparser-dev libcsv-dev zlib1g-dev"
SLURM_PACKAGES="slurmctld slurmd slurm-client munge"
EXAMPLE_PACKAGES="python3-torch python3-sklearn"
TEST_PACKAGES="libcmocka-dev bats clang valgrind mpich libmpich-dev slurmdbd mariadb-server shellcheck git python3-optuna tmux
    man-db groff bash-completion debhelper gcovr cppcheck clang-tidy build-essential"
# Without these the tests that need them are skipped, and say so.
OPTIONAL_PACKAGES="chromium-headless-shell fonts-dejavu-core slurmrestd btrfs-progs libfaketime"

# install PACKAGE...: with apt what is not there yet; without root or apt only says what is missing.
install() {
    local package missing=()
    if ! command -v dpkg-query >/dev/null; then
        echo "not a Debian system: make sure that you have the equivalents of: $*" >&2
        return 0
    fi
    for package; do
        [ "$(dpkg-query -Wf '${Status}' "$package" 2>/dev/null)" = "install ok installed" ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "== installing: ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        echo "run as root, or first: apt-get install ${missing[*]}" >&2
        return 1
    fi
    # Packages must not start daemons: the private clusters are the only Slurm here.
    local policy=/usr/sbin/policy-rc.d made=
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
        made=1
    fi
    local rc=0
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq -y --no-install-recommends install "${missing[@]}"; } \
        >"${TMPDIR:-/tmp}/dt-tune-apt.log" 2>&1 || rc=$?
    [ -z "$made" ] || rm -f $policy
    [ $rc = 0 ] || tail -20 "${TMPDIR:-/tmp}/dt-tune-apt.log" >&2
    return $rc
}

# build DIR [CONFIGURE ARGUMENT...]: configures and makes in DIR, out of tree; quiet unless it fails.
build() {
    local dir=$1 log
    shift
    mkdir -p "$dir"
    log=$dir/build.log
    if ! {
        { [ -x "$top/configure" ] || (cd "$top" && autoreconf -fi); } &&
            (cd "$dir" && "$top/configure" "$@" && make -j"$(nproc)")
    } >"$log" 2>&1; then
        tail -40 "$log" >&2
        return 1
    fi
}
