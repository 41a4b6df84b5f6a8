/* The submission reader. Scripts come from tests/data/scripts: each has a twin NAME.expected that
 * holds what must be read from it. `test_submission --print SCRIPT [ARG...]` prints the same for
 * any script; the cluster tests compare that with the real sbatch. */
#include "plugin/options.h"
#include "spec/submission_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *const no_env[] = {"PATH=/usr/bin:/bin", NULL};
static char *work;   /* an empty folder, the current directory of each test */
static char *folder; /* of the fixtures */

/* ---- helpers ---- */

/* "SCRIPT:LINE NAME=VALUE" per option in force, then warnings; or "error: ..." */
static char *describe(struct dt_submission *s, struct dt_error *e)
{
    struct dt_buf b = DT_BUF_INIT;
    if (!s)
        dt_buf_addf(&b, "error: %s\n", e->text);
    for (size_t i = 0; s && i < s->n; i++) {
        const struct dt_option *o = &s->options[i];
        if (strcmp(o->name, "dt-param") != 0 && dt_submission_get(s, o->name) != o)
            continue;
        char *place = dt_option_place(s, o);
        dt_buf_addf(&b, "%s %s%s%s\n", place, o->name, o->value ? "=" : "",
                    o->value ? o->value : "");
        free(place);
    }
    for (size_t i = 0; s && i < s->warnings.n; i++)
        dt_buf_addf(&b, "warning: %s\n", s->warnings.v[i]);
    for (size_t i = 0; s && i < s->args.n; i++)
        dt_buf_addf(&b, "argument: %s\n", s->args.v[i]);
    return dt_buf_take(&b);
}

static char *read_and_describe(char *const *argv, char *const *env, int fd, const char *sbatch)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *s = dt_submission_read(argv, env, fd, sbatch, &e);
    char *text = describe(s, &e);
    dt_submission_free(s);
    dt_error_clear(&e);
    return text;
}

#define ARGV(...) ((char *[]){"sbatch", __VA_ARGS__, NULL})
#define ENV(...) ((char *[]){"PATH=/usr/bin:/bin", __VA_ARGS__, NULL})

static void check(char *const *argv, char *const *env, const char *expected)
{
    char *text = read_and_describe(argv, env, -1, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static void put(const char *path, const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    if (dt_write_file(path, text, strlen(text), 0755, &e) < 0)
        fail_msg("%s", e.text);
}

static int enter_folder(void **state)
{
    (void)state;
    char template[] = "/tmp/dt-submission.XXXXXX";
    if (!mkdtemp(template) || chdir(template) < 0)
        return -1;
    work = dt_xstrdup(template);
    put("a.sh", "#!/bin/sh\n#SBATCH --ntasks=2 --time=5\nhostname\n");
    return 0;
}

static int leave_folder(void **state)
{
    (void)state;
    char *argv[] = {"rm", "-rf", work, NULL};
    struct dt_proc_result r;
    int rc = chdir("/") < 0 ? -1 : dt_proc_run(argv, NULL, 10, &r, NULL);
    dt_proc_result_free(&r);
    free(work);
    return rc;
}

/* ---- fixtures ---- */

static char *data_folder(void)
{
    const char *src = getenv("srcdir");
    char *relative = dt_xasprintf("%s/tests/data/scripts", src ? src : ".");
    char *path = realpath(relative, NULL);
    free(relative);
    return path;
}

static void check_fixture(const char *name)
{
    struct dt_error e = DT_ERROR_INIT;
    char *twin = dt_xasprintf("%s.expected", name);
    char *expected = dt_read_file(twin, 1 << 20, NULL, &e);
    if (!expected)
        fail_msg("%s", e.text);
    char *text = read_and_describe(ARGV((char *)name), no_env, -1, NULL);
    if (strcmp(text, expected) != 0)
        print_error("--- %s\n", name);
    assert_string_equal(text, expected);
    free(text);
    free(expected);
    free(twin);
}

static void test_fixtures(void **state)
{
    (void)state;
    struct dirent *entry;
    int n = 0, refused = 0;
    assert_non_null(folder);
    assert_int_equal(chdir(folder), 0);
    DIR *d = opendir(".");
    assert_non_null(d);
    while ((entry = readdir(d))) {
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".expected"))
            continue;
        check_fixture(entry->d_name);
        n++;
        refused += dt_starts_with(entry->d_name, "bad-");
    }
    closedir(d);
    assert_true(refused >= 30 && refused <= n - 30);
    assert_int_equal(chdir(work), 0);
}

/* ---- command line and environment ---- */

static void test_precedence(void **state)
{
    (void)state;
    check(ARGV("--time=7", "-p", "b", "a.sh", "x", "-n", "9"),
          ENV("SBATCH_TIMELIMIT=6", "SBATCH_PARTITION=a", "SBATCH_QOS=q"),
          "a.sh:2 ntasks=2\n"
          "SBATCH_QOS qos=q\n"
          "--time time=7\n"
          "--partition partition=b\n"
          "argument: x\nargument: -n\nargument: 9\n");
    check(ARGV("--", "a.sh"), no_env, "a.sh:2 ntasks=2\na.sh:2 time=5\n");
    check(
        ARGV("-HvvJ", "x", "a.sh"), no_env,
        "a.sh:2 ntasks=2\na.sh:2 time=5\n--hold hold\n--verbose verbose\n--job-name job-name=x\n");
    check(ARGV("--dt-tu", "--dt-param=a=1", "--dt-par", "b=2", "a.sh"), no_env,
          "error: command line: \"--dt-par\" is short for several options: write out one of "
          "--dt-param, --dt-parallel\n");
    check(ARGV("--dt-tu", "--dt-param=a=1", "--dt-param", "b=2", "a.sh"), no_env,
          "a.sh:2 ntasks=2\na.sh:2 time=5\n--dt-tune dt-tune\n--dt-param dt-param=a=1\n"
          "--dt-param dt-param=b=2\n");
}

static void test_environment_flags(void **state)
{
    (void)state;
    put("f.sh", "#!/bin/sh\n#SBATCH --requeue --overcommit --exclusive=user\n");
    check(ARGV("f.sh"), ENV("SBATCH_OVERCOMMIT=yes", "SBATCH_EXCLUSIVE="),
          "f.sh:2 requeue\nSBATCH_EXCLUSIVE exclusive\nSBATCH_OVERCOMMIT overcommit\n");
    check(ARGV("f.sh"), ENV("SBATCH_NO_REQUEUE=1", "SBATCH_OVERCOMMIT=no"),
          "f.sh:2 exclusive=user\nSBATCH_NO_REQUEUE no-requeue\n");
    check(ARGV("a.sh"), ENV("SLURM_HINT=memory_bound", "SBATCH_DEBUG=2"),
          "a.sh:2 ntasks=2\na.sh:2 time=5\nSLURM_HINT hint=memory_bound\nSBATCH_DEBUG verbose\n");
    check(ARGV("a.sh"), ENV("SLURM_HINT=memory_bound", "SBATCH_HINT=compute_bound"),
          "a.sh:2 ntasks=2\na.sh:2 time=5\nSBATCH_HINT hint=compute_bound\n");
}

static void test_mail(void **state)
{
    (void)state;
    put("mail.sh", "#!/bin/sh\n#SBATCH --mail-type=BEGIN\n#SBATCH --mail-type=END\n");
    check(ARGV("mail.sh"), no_env,
          SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0) ? "mail.sh:3 mail-type=BEGIN,END\n"
                                                             : "mail.sh:3 mail-type=END\n");
}

static void test_environment_errors(void **state)
{
    (void)state;
    check(ARGV("a.sh"), ENV("SBATCH_TIMELIMIT=2h"),
          "error: SBATCH_TIMELIMIT=2h: a time is needed: minutes, MM:SS, HH:MM:SS, D-HH or "
          "D-HH:MM:SS\n");
    char *text = read_and_describe(ARGV("a.sh"), ENV("SLURM_CLUSTERS=x"), -1, NULL);
    assert_true(dt_starts_with(text, "error: SLURM_CLUSTERS: --clusters: "));
    free(text);
    text = read_and_describe(ARGV("a.sh"), ENV("SBATCH_ARRAY_INX=1-3"), -1, NULL);
    assert_true(dt_starts_with(text, "error: SBATCH_ARRAY_INX: --array: "));
    free(text);
}

static void test_switches(void **state)
{
    (void)state;
    put("s.sh", "#!/bin/sh\n#SBATCH --switches=2@10\n");
    check(ARGV("s.sh"), ENV("SBATCH_REQ_SWITCH=1"), "SBATCH_REQ_SWITCH switches=1@10\n");
    check(ARGV("s.sh"), ENV("SBATCH_WAIT4SWITCH=5"), "SBATCH_WAIT4SWITCH switches=2@5\n");
    check(ARGV("a.sh"), ENV("SBATCH_WAIT4SWITCH=5"), "a.sh:2 ntasks=2\na.sh:2 time=5\n");
}

static void test_memory_forms(void **state)
{
    (void)state;
    put("m.sh", "#!/bin/sh\n#SBATCH --mem=4G\n");
    check(ARGV("m.sh"), ENV("SBATCH_MEM_PER_CPU=1G"), "m.sh:2 mem=4G\n");
    check(ARGV("--mem-per-gpu=1G", "a.sh"), ENV("SBATCH_MEM_PER_CPU=1G", "SBATCH_MEM_PER_NODE=1"),
          "a.sh:2 ntasks=2\na.sh:2 time=5\n--mem-per-gpu mem-per-gpu=1G\n");
    check(ARGV("--mem-per-cpu=1G", "m.sh"), no_env,
          "error: --mem-per-cpu: --mem-per-cpu and --mem (m.sh:2) exclude each other: keep one of "
          "them\n");
    check(ARGV("a.sh"), ENV("SBATCH_MEM_PER_CPU=1G", "SBATCH_MEM_PER_NODE=1"),
          "error: SBATCH_MEM_PER_CPU: --mem-per-cpu and --mem (SBATCH_MEM_PER_NODE) exclude each "
          "other: keep one of them\n");
}

static void test_het_separator(void **state)
{
    (void)state;
    char *text = read_and_describe(ARGV("-n1", ":", "-n2", "a.sh"), no_env, -1, NULL);
    assert_true(dt_starts_with(text, "error: command line: a \":\" begins another component"));
    free(text);
    /* sbatch drops a ":" among the script's arguments */
    check(ARGV("a.sh", "b", ":", "c"), no_env,
          "a.sh:2 ntasks=2\na.sh:2 time=5\nargument: b\nargument: c\n");
}

static void test_command_line_errors(void **state)
{
    (void)state;
    check(ARGV("--ntasks=x", "a.sh"), no_env,
          "error: command line: --ntasks=x: a whole number above 0 is needed\n");
    check(ARGV("a.sh", "--time"), no_env, "a.sh:2 ntasks=2\na.sh:2 time=5\nargument: --time\n");
    check(ARGV("--time"), no_env,
          "error: command line: --time: its argument is missing: write --time=VALUE\n");
    char *text = read_and_describe(ARGV("--=x", "a.sh"), no_env, -1, NULL);
    assert_true(dt_starts_with(text, "error: command line: \"--\" is short for several options: "
                                     "write out one of --account, --acctg-freq, "));
    free(text);
    check(ARGV("--wrap=hostname", "a.sh"), no_env,
          "error: command line: \"a.sh\": a script or arguments cannot stand beside --wrap: put "
          "them into it\n");
}

/* ---- where the script comes from ---- */

static void test_script_search(void **state)
{
    (void)state;
    assert_int_equal(mkdir("bin", 0755), 0);
    assert_int_equal(mkdir("sub", 0755), 0);
    assert_int_equal(mkdir("d.sh", 0755), 0);
    put("bin/b.sh", "#!/bin/sh\n#SBATCH --ntasks=3\n");
    put("bin/a.sh", "#!/bin/sh\n#SBATCH --ntasks=4\n");
    put("bin/d.sh", "#!/bin/sh\n#SBATCH --ntasks=5\n");
    put("sub/c.sh", "#!/bin/sh\n#SBATCH --ntasks=6\n");
    char *path = dt_xasprintf("PATH=/usr/bin:%s/bin", work);
    char *env[] = {path, NULL};
    check(ARGV("b.sh"), env, "b.sh:2 ntasks=3\n");
    check(ARGV("a.sh"), env, "a.sh:2 ntasks=2\na.sh:2 time=5\n");
    check(ARGV("d.sh"), env, "d.sh:2 ntasks=5\n");
    check(ARGV("sub/c.sh"), env, "sub/c.sh:2 ntasks=6\n");
    check(ARGV("./a.sh"), env, "./a.sh:2 ntasks=2\n./a.sh:2 time=5\n");
    check(ARGV("-Dsub", "c.sh"), env, "c.sh:2 ntasks=6\n--chdir chdir=sub\n");
    check(ARGV("-Dsub", "b.sh"), env, "b.sh:2 ntasks=3\n--chdir chdir=sub\n");
    check(ARGV("-Dsub", "./a.sh"), env, "./a.sh:2 ntasks=2\n./a.sh:2 time=5\n--chdir chdir=sub\n");
    check(ARGV("-Dsub", "a.sh"), no_env, "a.sh:2 ntasks=2\na.sh:2 time=5\n--chdir chdir=sub\n");
    free(path);
}

static void test_script_missing(void **state)
{
    (void)state;
    char *expected =
        dt_xasprintf("error: c.sh: no such script in %s or along PATH: give its path\n", work);
    check(ARGV("c.sh"), no_env, expected);
    free(expected);
    check(ARGV("./c.sh"), no_env, "error: ./c.sh: there is no such script: check the path\n");
    check(ARGV("./"), no_env, "error: ./: is a directory: give the batch script in it\n");
    put("big.sh", "#!/bin/sh\n");
    assert_int_equal(truncate("big.sh", (4 << 20) + 1), 0);
    char *text = read_and_describe(ARGV("big.sh"), no_env, -1, NULL);
    assert_non_null(strstr(text, "big.sh: larger than the limit of 4096 KiB"));
    free(text);
    if (geteuid() != 0) {
        assert_int_equal(chmod("big.sh", 0), 0);
        check(ARGV("big.sh"), no_env,
              "error: big.sh: cannot read the script: Permission denied: make it readable (chmod "
              "u+r)\n");
    }
}

static void test_wrap(void **state)
{
    (void)state;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *s = dt_submission_read(
        ARGV("-n2", "--wrap", "#SBATCH -n9\n#PBS -N x\nsrun ./a"), no_env, -1, NULL, &e);
    assert_non_null(s);
    assert_string_equal(s->script,
                        "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n#SBATCH "
                        "-n9\n#PBS -N x\nsrun ./a\n");
    assert_int_equal(s->script_len, strlen(s->script));
    assert_string_equal(s->script_path, "--wrap");
    assert_string_equal(dt_submission_get(s, "ntasks")->value, "2");
    dt_submission_free(s);
}

static void check_stdin(int fd, const char *expected)
{
    char *text = read_and_describe((char *[]){"sbatch", NULL}, no_env, fd, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static void test_stdin(void **state)
{
    (void)state;
    const char *read = "standard input:2 ntasks=2\nstandard input:2 time=5\n";
    int fd = open("a.sh", O_RDONLY | O_CLOEXEC), p[2];
    check_stdin(fd, read);
    assert_true(lseek(fd, 0, SEEK_END) > 0);
    check_stdin(fd, read); /* a file that sbatch has read already */
    close(fd);
    check_stdin(-1, "error: standard input: the script cannot be read from there a second time: "
                    "put it into a file and give its name\n");
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "#!/bin/sh\n#SBATCH --ntasks=2 --time=5\n", 38), 38);
    close(p[1]);
    check_stdin(p[0], read);
    check_stdin(p[0], "error: standard input: holds no script (a pipe can be read only once): put "
                      "the script into a file and give its name\n");
    close(p[0]);
}

/* ---- the size in the script ---- */

static void test_size_that_no_trial_changes(void **state)
{
    static const struct {
        const char *script, *warning;
    } cases[] = {
        {"#!/bin/bash\n# --nnodes 2\nsrun torchrun \\\n  --nnodes 2 \\\n  t.py\n",
         "j.sh:4: --nnodes 2 is the same in every trial, and the number of workers is not: leave it out"},
        {"#!/bin/bash\nsrun torchrun --nnodes=16 t.py", "j.sh:2: --nnodes 16 is"},
        {"#!/bin/bash\naccelerate launch --num_machines 4 t.py", "j.sh:2: --num_machines 4 is"},
        {"#!/bin/bash\nsrun python t.py --world-size=4", "j.sh:2: --world-size 4 is"},
        {"#!/bin/bash\nsrun torchrun --nnodes=$SLURM_NNODES t.py", NULL},
        {"#!/bin/bash\nsrun torchrun --nnodes=1:4 --nnodes-x 2 t.py --nnodes", NULL},
        {"#!/bin/bash\nsrun torchrun --my--nnodes=2 t.py --nnodes=2x --nnodes2", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dt_submission s = {.script = (char *)cases[i].script, .script_name = (char *)"j.sh"};
        char *warning = dt_submission_fixed_size(&s);
        if (cases[i].warning)
            assert_true(warning && dt_starts_with(warning, cases[i].warning));
        else
            assert_null(warning);
        free(warning);
    }
}

static void test_help_reads_no_script(void **state)
{
    (void)state;
    check(ARGV("--version", "nowhere.sh"), no_env, "--version version\nargument: nowhere.sh\n");
}

/* ---- options of other plugins ---- */

static const char fake_sbatch[] =
    "#!/bin/sh\n"
    "echo asked >>asked\n"
    "cat <<END\n"
    "Usage: sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]\n"
    "      --bogus                 not in the section of plugins\n"
    "\n"
    "Options provided by plugins:\n"
    "      --dt-tune=SPEC.json     ours\n"
    "\n"
    "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n"
    "                              the image to use, see also\n"
    "                              --container-mounts\n"
    "      --no-container-mount-home  do not bind mount\n"
    "      --container-mounts=SRC:DST  bind mounts\n"
    "\n"
    "GPU scheduling options:\n"
    "      --after                 not in the section either\n"
    "END\n";

static void check_foreign(char *const *argv, const char *expected)
{
    char *sbatch = dt_xasprintf("%s/fake-sbatch", work);
    char *text = read_and_describe(argv, no_env, -1, sbatch);
    assert_string_equal(text, expected);
    free(text);
    free(sbatch);
}

static void test_foreign(void **state)
{
    (void)state;
    put("fake-sbatch", fake_sbatch);
    put("p.sh", "#!/bin/sh\n#SBATCH --container-mounts /a:/b -n2 --container-im=x\n");
    check_foreign(ARGV("-Hv", "--no-container-mount-home", "p.sh", "w"),
                  "p.sh:2 container-mounts=/a:/b\np.sh:2 ntasks=2\np.sh:2 container-image=x\n"
                  "--hold hold\n--verbose verbose\n"
                  "--no-container-mount-home no-container-mount-home\nargument: w\n");
    check_foreign(ARGV("--container-image", "a.sh", "p.sh"),
                  "p.sh:2 container-mounts=/a:/b\np.sh:2 ntasks=2\n"
                  "--container-image container-image=a.sh\n");
    struct stat st;
    assert_int_equal(stat("asked", &st), 0);
    assert_int_equal(st.st_size, 2 * strlen("asked\n")); /* once per submission */
}

static void test_foreign_errors(void **state)
{
    (void)state;
    put("fake-sbatch", fake_sbatch);
    check_foreign(ARGV("--bogus=1", "a.sh"),
                  "error: command line: unknown option \"--bogus=1\": see sbatch --help\n");
    check_foreign(ARGV("--container-imgae=1", "a.sh"),
                  "error: command line: unknown option \"--container-imgae=1\": did you mean "
                  "--container-image?\n");
    check_foreign(ARGV("--mem-p", "a.sh"),
                  "error: command line: \"--mem-p\" is short for several options: write out one of "
                  "--mem-per-cpu, --mem-per-gpu\n");
}

static void test_foreign_without_sbatch(void **state)
{
    (void)state;
    check(ARGV("--container-image=x y", "a.sh"), no_env,
          "a.sh:2 ntasks=2\na.sh:2 time=5\n--container-image container-image=x y\n");
    check(ARGV("--foreign-or-misspelt", "a.sh"), no_env,
          "error: command line: unknown option \"--foreign-or-misspelt\": see sbatch --help "
          "(an option of another Slurm plugin needs the form --name=value here)\n");
    char *text = read_and_describe(ARGV("--image=x", "a.sh"), no_env, -1, "/bin/false");
    assert_string_equal(text, "a.sh:2 ntasks=2\na.sh:2 time=5\n--image image=x\n");
    free(text);
}

/* ---- the table, JSON, quoting ---- */

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        const struct dt_sbatch_option *o = dt_sbatch_option_find(dt_option_table[i].name);
        assert_non_null(o);
        assert_int_equal(o->class, DT_OPT_DT);
        assert_int_equal(o->has_arg, (int)dt_option_table[i].has_arg);
    }
    for (const struct dt_sbatch_option *o = dt_sbatch_options; o->name; o++) {
        assert_int_equal(o->class == DT_OPT_REFUSE, o->why != NULL);
        if (o->same_as)
            assert_non_null(dt_sbatch_option_find(o->same_as));
        for (const struct dt_sbatch_option *p = dt_sbatch_options; p < o; p++) {
            assert_string_not_equal(o->name, p->name);
            assert_true(!o->short_name || o->short_name != p->short_name);
            assert_true(!o->env || !p->env || strcmp(o->env, p->env) != 0);
        }
    }
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        bool ok;
    } cases[] = {
        {"nodes", "4", true},       {"nodes", "0", true},         {"nodes", "2-4", true},
        {"nodes", "1k", true},      {"nodes", "-4", true},        {"nodes", "4-", false},
        {"nodes", "4-2", false},    {"nodes", "", false},         {"nodes", "a", false},
        {"nodes", "2-4x", false},   {"ntasks", "1", true},        {"ntasks", "0", false},
        {"ntasks", "-1", false},    {"ntasks", "1.5", false},     {"ntasks", "", false},
        {"core-spec", "0", true},   {"mem", "0", true},           {"mem", "4g", true},
        {"mem", "4GB", true},       {"mem", "4GiB", false},       {"mem", "G", false},
        {"mem", "-1", false},       {"mem", "1.5G", false},       {"time", "1", true},
        {"time", "1:2", true},      {"time", "1:2:3", true},      {"time", "1-2", true},
        {"time", "1-2:3", true},    {"time", "1-2:3:4", true},    {"time", "infinite", true},
        {"time", "-1", true},       {"time", "1:2:3:4", false},   {"time", "1-2-3", false},
        {"time", "1:2-3", false},   {"time", ":", false},         {"time", "", false},
        {"time", "1h", false},      {"switches", "2@1:00", true}, {"switches", "@1", false},
        {"export-file", "e", true}, {"export-file", "3", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct dt_sbatch_option *o = dt_sbatch_option_find(cases[i].name);
        bool ok = !dt_sbatch_value_fault(o, cases[i].value);
        if (ok != cases[i].ok)
            fail_msg("--%s=%s is %s", cases[i].name, cases[i].value, ok ? "taken" : "refused");
    }
}

static void test_json(void **state)
{
    (void)state;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_submission *s = dt_submission_read(
        ARGV("-n3", "--exclusive", "--dt-param=a=1", "--dt-param=b=2", "a.sh", "x y"),
        ENV("SBATCH_PARTITION=p"), -1, NULL, &e);
    assert_non_null(s);
    struct json_object *o = dt_submission_to_json(s);
    char *text = dt_json_text(o), *expected;
    expected = dt_xasprintf("{\"options\":[[\"time\",\"5\"],[\"partition\",\"p\"],[\"ntasks\","
                            "\"3\"],[\"exclusive\",null],[\"dt-param\",\"a=1\"],[\"dt-param\","
                            "\"b=2\"]],\"args\":[\"x y\"],\"script_name\":\"a.sh\",\"script_path\":"
                            "\"%s\"}",
                            s->script_path);
    assert_string_equal(text, expected);
    dt_submission_free(s);
    s = dt_submission_from_json(o, &e);
    assert_non_null(s);
    assert_null(s->script);
    assert_string_equal(s->args.v[0], "x y");
    assert_string_equal(dt_submission_get(s, "time")->value, "5");
    assert_ptr_equal(dt_submission_get(s, "time")->def, dt_sbatch_option_find("time"));
    assert_null(dt_submission_get(s, "exclusive")->value);
    assert_null(dt_submission_get(s, "mem"));
    json_object_put(o);
    o = dt_submission_to_json(s);
    free(text);
    text = dt_json_text(o);
    assert_string_equal(text, expected);
    json_object_put(o);
    free(text);
    free(expected);
    dt_submission_free(s);
}

static void test_json_damaged(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"options\": 1}",
        "{\"options\": [1]}",
        "{\"options\": [[\"time\"]]}",
        "{\"options\": [[\"time\", 5]]}",
        "{\"options\": [[\"time\", null]]}",
        "{\"options\": [], \"args\": [null]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *o = json_tokener_parse(texts[i]);
        assert_null(dt_submission_from_json(o, &e));
        assert_non_null(strstr(e.text, "submission"));
        dt_error_clear(&e);
        json_object_put(o);
    }
}

static void test_quote(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",        "plain",     "two words",     "a#b",
        "it's",    "say \"x\"", "back\\slash\\", "\ttab",
        "$HOME",   ":",         "hetjob",        "entra\xC3\xAEnement",
        "[1-3],4", "\\ ",       "a\\ b",         "'\"'",
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct dt_strv warnings = DT_STRV_INIT;
        struct dt_option_reader r = {0};
        struct dt_option_list l = {0};
        char *quoted = dt_sbatch_quote(values[i], &e);
        char *text = dt_xasprintf("#!/bin/sh\n#SBATCH --comment=%s --hold\n", quoted);
        assert_int_equal(dt_option_reader_script(&r, text, strlen(text), "q", &l, &warnings, &e),
                         0);
        assert_int_equal(l.n, 2);
        assert_string_equal(l.v[0].value, values[i]);
        dt_option_list_free(&l);
        dt_option_reader_free(&r);
        dt_strv_free(&warnings);
        free(quoted);
        free(text);
    }
    struct dt_error e = DT_ERROR_INIT;
    assert_null(dt_sbatch_quote("a\nb", &e));
    assert_non_null(strstr(e.text, "control character"));
    dt_error_clear(&e);
}

/* From 24.05 on an escaped blank is part of the word. */
static void test_escaped_blank(void **state)
{
    (void)state;
    put("e.sh", "#!/bin/sh\n#SBATCH --comment=a\\ b\n");
    char *text = read_and_describe(ARGV("e.sh"), no_env, -1, NULL);
    if (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0))
        assert_string_equal(text, "e.sh:2 comment=a b\n");
    else
        assert_string_equal(text, "error: e.sh:2: \"b\" is no option: remove it, or put # before "
                                  "it if it is a comment\n");
    free(text);
}

static int print_one(char **argv)
{
    extern char **environ;
    struct dt_strv words = DT_STRV_INIT;
    dt_strv_add(&words, "sbatch");
    dt_strv_addv(&words, argv);
    char *text = read_and_describe(words.v, environ, -1, NULL);
    int rc = dt_starts_with(text, "error: ") ? 2 : 0;
    fputs(text, stdout);
    free(text);
    dt_strv_free(&words);
    return rc;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, enter_folder, leave_folder)

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--print") == 0)
        return print_one(argv + 2);
    const struct CMUnitTest tests[] = {
        TEST(fixtures),
        TEST(precedence),
        TEST(environment_flags),
        TEST(mail),
        TEST(environment_errors),
        TEST(switches),
        TEST(memory_forms),
        TEST(het_separator),
        TEST(command_line_errors),
        TEST(script_search),
        TEST(script_missing),
        TEST(wrap),
        TEST(stdin),
        TEST(size_that_no_trial_changes),
        TEST(help_reads_no_script),
        TEST(foreign),
        TEST(foreign_errors),
        TEST(foreign_without_sbatch),
        TEST(table),
        TEST(values),
        TEST(json),
        TEST(json_damaged),
        TEST(quote),
        TEST(escaped_blank),
    };
    folder = data_folder();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(folder);
    return rc;
}
