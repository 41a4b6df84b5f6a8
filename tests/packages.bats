#!/usr/bin/env bats
# The packages: that they can be built, what is in them, what they need, and that what is in them runs.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_DIRNAME/.."
    version=$(sed -nE 's/^AC_INIT\(\[dt-tune\], \[([^]]*)\].*/\1/p' configure.ac)
}

# The package's files and links, one a line.
content() {
    dpkg-deb -c "$1" | awk '$1 !~ /^d/ {print $6}' | sed 's,^\.,,' | sort
}

@test "the version is the same everywhere" {
    grep -q "^dt-tune ($version-" etc/packaging/debian/changelog
    grep -qE "^Version: +$version$" etc/packaging/dt-tune.spec
}

@test "the RPM spec can be read" {
    command -v rpmspec >/dev/null || skip "rpmspec is not installed"
    run -0 rpmspec -q --qf '%{name} ' etc/packaging/dt-tune.spec
    [ "$output" = "dt-tune dt-tune-plugins " ]
}

@test "Debian packages: built, whole, and they run" {
    command -v dh >/dev/null || skip "debhelper is not installed"
    command -v dpkg-buildpackage >/dev/null || skip "dpkg-dev is not installed"
    # As a package is built, not as we are tested.
    unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS CC
    etc/packaging/build deb "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/log" 2>&1 || {
        tail -40 "$BATS_TEST_TMPDIR/log"
        return 1
    }
    cd "$BATS_TEST_TMPDIR"
    [ "$(echo *.deb | wc -w)" = 2 ]
    tools=$(echo dt-tune_"$version"-*.deb) plugins=$(echo dt-tune-plugins_"$version"-*.deb)

    content "$tools" >files
    for file in bin/dt-tune bin/dt-sbatch bin/dt-launch share/man/man1/dt-tune.1.gz share/man/man5/dt-tune.conf.5.gz \
        share/dt-tune/report.html share/dt-tune/echarts.min.js share/doc/dt-tune/examples/ps_async.sh include/dt_tune.h \
        share/bash-completion/completions/dt-tune share/bash-completion/completions/dt-sbatch \
        share/doc/dt-tune/dt-tune.conf.example; do
        grep -qx "/usr/$file" files || { echo "no $file in $tools"; return 1; }
    done
    run grep -E '^/etc|\.so$|\.la$|man8|plugstack' files
    [ "$output" = "" ]

    content "$plugins" >files
    grep -qE '^/usr/lib/.*/spank_dt_tune\.so$' files
    grep -qE '^/usr/lib/.*/job_submit_dt_tune\.so$' files
    # Where Slurm looks for them, also if it was built where only Slurm's headers are.
    if dpkg -L slurm-wlm-basic-plugins >slurms 2>/dev/null; then
        grep -qx "$(dirname "$(grep -m 1 '/select_cons_tres\.so$' slurms)")/spank_dt_tune.so" files
    fi
    grep -qx /usr/share/dt-tune/plugstack.conf.d/dt-tune.conf files
    run ! grep /etc/slurm files
    grep -qx /usr/share/man/man8/job_submit_dt_tune.8.gz files
    run grep -E '/usr/(s?bin|include)|\.la$|/dt-tune\.conf\.5' files
    [ "$output" = "" ]
    dpkg-deb -f "$plugins" Depends | grep -q "dt-tune (= $version-"
    dpkg-deb -f "$plugins" Depends | grep -qE 'slurm-[a-z-]+ \(>= [0-9.]+\), slurm-[a-z-]+ \(<< [0-9.]+~\)'
    # Nobody's slurmctld is restarted by an installation.
    dpkg-deb --ctrl-tarfile "$plugins" | tar -tf - >control
    grep -q conffiles control
    run ! grep -E 'post|pre' control

    mkdir root
    dpkg-deb -x "$tools" root
    dpkg-deb -x "$plugins" root
    [ "$(root/usr/bin/dt-tune --version)" = "dt-tune $version" ]
    root/usr/bin/dt-sbatch --help | grep -q -- --dt-config
    if command -v lintian >/dev/null; then
        run lintian --tag-display-limit 0 -- *.deb
        echo "$output"
        run ! grep '^E:' <<<"$output"
    fi
}
