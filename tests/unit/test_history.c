/* history: what is the same workload; records survive writers at once, torn lines and bad folders;
 * which configuration is applied; past observations on the present space. */
#include "expand/expand.h"
#include "history/history.h"
#include "tuner/setup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static char *base, *dir; /* a folder of this test's own, and a history in it */

static int make_base(void **state)
{
    char path[] = "/tmp/dt-history.XXXXXX";
    (void)state;
    base = dt_xstrdup(mkdtemp(path));
    dir = dt_xasprintf("%s/history", base);
    return chdir(base);
}

static int remove_base(void **state)
{
    char *argv[] = {"rm", "-rf", base, NULL};
    struct dt_proc_result r;
    (void)state;
    if (chdir("/") < 0 || dt_proc_run(argv, NULL, 10, &r, NULL) < 0)
        return -1;
    dt_proc_result_free(&r);
    free(base);
    free(dir);
    return 0;
}

static struct json_object *json_of(const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = dt_json_parse(text, "test", &e);
    if (!o)
        fail_msg("%s", e.text);
    return o;
}

static struct dt_spec *spec_of(const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = json_of(text);
    struct dt_spec *s = dt_spec_parse(json, text, "S.json", &e);
    if (!s)
        fail_msg("%s", e.text);
    json_object_put(json);
    return s;
}

static void put_file(const char *path, const char *text)
{
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, NULL), 0);
}

/* ---- workloads ---- */

static struct dt_workload workload(const char *script, const char *spec_text, const char *arg)
{
    struct dt_spec *spec = spec_of(spec_text);
    struct dt_strv args = DT_STRV_INIT;
    struct dt_workload w;
    if (arg)
        dt_strv_split(&args, arg, " ");
    dt_workload_make(&w, spec, script, &args);
    dt_strv_free(&args);
    dt_spec_free(spec);
    return w;
}

#define SCRIPT "#!/bin/bash\n#SBATCH -n 4\nmodule load x\nsrun python train.py\n"
#define SPEC "{\"hyperparameters\": {\"lr\": [0.1, 0.2], \"opt\": [\"a\", \"b\"]}}"

static bool same(const char *script, const char *spec, const char *arg)
{
    struct dt_workload a = workload(SCRIPT, SPEC, "x y"), b = workload(script, spec, arg);
    return strcmp(a.signature, b.signature) == 0;
}

static void what_does_not_matter_is_not_in_the_signature(void **state)
{
    static const char *const scripts[] = {
        "#!/bin/bash\nmodule load x\nsrun python train.py\n",
        "#!/bin/bash\nmodule load x\nsrun python train.py",
        ("#!/bin/bash  \n\n\n#SBATCH -n 8 --time=5\n # why\n\t#\nmodule load x \t\n  \nsrun python "
         "train.py\t\n\n#end"),
    };
    static const char *const specs[] = {
        "{\"hyperparameters\": {\"opt\": [\"c\"], \"lr\": {\"low\": 1, \"high\": 2}}}",
        "{\"hyperparameters\": {\"lr\": [0.1], \"opt\": [\"a\"]}, \"dt\": {\"ps\": [0, 1]}, "
        "\"search\": {\"seed\": 7, \"max_configs\": 3}, \"constraints\": [\"lr < 1\"], "
        "\"objective\": {\"metric\": \"time\"}}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++)
        assert_true(same(scripts[i], SPEC, "x y"));
    for (size_t i = 0; i < COUNT(specs); i++)
        assert_true(same(SCRIPT, specs[i], "x y"));
}

static void what_matters_is_in_the_signature(void **state)
{
    static const char *const scripts[] = {
        "",
        "#!/bin/bash\nmodule load x\nsrun python train.py -v\n",
        "#!/bin/sh\nmodule load x\nsrun python train.py\n",
        "#!/bin/bash\n  module load x\nsrun python train.py\n",
        "#!/bin/bash\nsrun python train.py\nmodule load x\n",
        "#!/bin/bash\nmodule load xsrun python train.py\n",
        "#!/bin/bash\nmodule load x # why\nsrun python train.py\n",
    };
    static const char *const specs[] = {
        "{}",
        "{\"hyperparameters\": {\"lr\": [0.1, 0.2]}}",
        "{\"hyperparameters\": {\"lr\": [0.1], \"opt\": [\"a\"]}, "
        "\"objective\": {\"metric\": \"cost\"}}",
        "{\"hyperparameters\": {\"lr\": [0.1], \"opt\": [\"a\"]}, "
        "\"target\": {\"metric\": \"acc\", \"at_least\": 0.9}}",
        "{\"hyperparameters\": {\"lr\": [0.1], \"opt\": [\"a\"]}, "
        "\"quality\": {\"metric\": \"acc\", \"at_least\": 0.9}}",
        "{\"hyperparameters\": {\"lr\": [0.1], \"opt\": [\"a\"]}, \"history\": {\"key\": \"k\"}}",
    };
    static const char *const args[] = {NULL, "x", "y x", "x y z", "xy"};
    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++)
        assert_false(same(scripts[i], SPEC, "x y"));
    for (size_t i = 0; i < COUNT(specs); i++)
        assert_false(same(SCRIPT, specs[i], "x y"));
    for (size_t i = 0; i < COUNT(args); i++)
        assert_false(same(SCRIPT, SPEC, args[i]));
}

static void a_key_stands_for_the_program_only(void **state)
{
    struct dt_workload a = workload(SCRIPT, "{\"history\": {\"key\": \"net\"}}", NULL);
    struct dt_workload b = workload("#!/bin/sh\nother\n", "{\"history\": {\"key\": \"net\"}}", "x");
    struct dt_workload c = workload(
        SCRIPT, "{\"history\": {\"key\": \"net\"}, \"objective\": {\"metric\": \"cost\"}}", NULL);
    struct dt_workload plain = workload(SCRIPT, "{}", NULL);
    char script[17];
    (void)state;
    assert_string_equal(a.signature, b.signature);
    assert_string_not_equal(a.signature, c.signature);
    assert_string_equal(a.program, c.program);
    assert_string_equal(a.own, plain.program);
    assert_string_equal(a.task, plain.task);
    dt_workload_script(SCRIPT, script);
    assert_string_equal(script, a.script);
    /* FNV-1a of the line, by the published offset and prime */
    assert_string_equal(workload("a", "{}", NULL).script, "089bdc07b544e7b2");
}

static void the_folder_is_found(void **state)
{
    static const struct {
        const char *own, *data, *home, *want;
    } cases[] = {
        {"/h", "/d", "/u", "/h"},
        {"", "/d", "/u", "/d/dt-tune/history"},
        {NULL, "relative", "/u", "/u/.local/share/dt-tune/history"},
        {NULL, NULL, "/u", "/u/.local/share/dt-tune/history"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const names[] = {"DT_TUNE_HISTORY", "XDG_DATA_HOME", "HOME"};
        const char *const values[] = {cases[i].own, cases[i].data, cases[i].home};
        for (int k = 0; k < 3; k++)
            values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]);
        char *got = dt_history_dir();
        assert_string_equal(got, cases[i].want);
        free(got);
    }
    setenv("DT_TUNE_HISTORY", "below", 1);
    char *got = dt_history_dir(), *want = dt_xasprintf("%s/below", base);
    assert_string_equal(got, want);
    free(got);
    free(want);
    unsetenv("DT_TUNE_HISTORY");
    unsetenv("HOME"); /* the user's own, by the password file */
    got = dt_history_dir();
    assert_non_null(strstr(got, "/.local/share/dt-tune/history"));
    free(got);
}

/* ---- the files ---- */

static struct json_object *record_of(const char *study, double time, const char *signature,
                                     const char *rest)
{
    char *text = dt_xasprintf("{\"version\":1,\"study\":\"%s\",\"dir\":\"/s/%s\",\"time\":%g,"
                              "\"signature\":\"%s\"%s}",
                              study, study, time, signature, rest);
    struct json_object *o = json_of(text);
    free(text);
    return o;
}

static int append(const char *study, double time, const char *signature, const char *rest)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = record_of(study, time, signature, rest);
    int rc = dt_history_append(dir, o, &e);
    json_object_put(o);
    if (rc < 0)
        print_message("# %s\n", e.text);
    dt_error_clear(&e);
    return rc;
}

/* "2 1": the studies' names. */
static void expect_studies(const char *signature, const char *want, size_t warnings)
{
    struct dt_history h;
    struct dt_strv names = DT_STRV_INIT;
    assert_int_equal(dt_history_read(dir, signature, false, &h, NULL), 0);
    for (size_t i = 0; i < h.n; i++)
        dt_strv_add(&names, dt_json_str(h.v[i], "study", "?"));
    char *text = dt_strv_join(&names, " ");
    assert_string_equal(text, want);
    assert_int_equal(h.warnings.n, warnings);
    free(text);
    dt_strv_free(&names);
    dt_history_free(&h);
}

static void the_last_record_of_each_study_counts(void **state)
{
    struct dt_history h;
    struct stat st;
    (void)state;
    expect_studies(NULL, "", 0);
    expect_studies("a-b", "", 0);
    assert_int_equal(append("1", 100, "a-b", ",\"trials\":3,\"observations\":[1],\"space\":[]"), 0);
    assert_int_equal(append("2", 200, "a-b", ""), 0);
    assert_int_equal(append("3", 50, "c-d", ""), 0);
    expect_studies(NULL, "2 1 3", 0);
    assert_int_equal(append("1", 300, "a-b", ",\"trials\":9,\"observations\":[1]"), 0);
    expect_studies(NULL, "1 2 3", 0);
    expect_studies("a-b", "1 2", 0);
    expect_studies("c-d", "3", 0);
    assert_int_equal(dt_history_read(dir, NULL, true, &h, NULL), 0);
    assert_int_equal(dt_json_int(dt_history_study(&h, "1"), "trials", 0), 9);
    assert_ptr_equal(dt_history_study(&h, "/s/1"), dt_history_study(&h, "1"));
    assert_null(dt_history_study(&h, "4"));
    assert_non_null(dt_json_get(h.v[0], "observations"));
    dt_history_free(&h);
    assert_int_equal(dt_history_read(dir, NULL, false, &h, NULL), 0);
    assert_null(dt_json_get(h.v[0], "observations"));
    dt_history_free(&h);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat("history/a-b.jsonl", &st), 0);
    assert_int_equal(st.st_mode & 0077, 0);
}

static void what_was_torn_or_damaged_is_passed_over(void **state)
{
    char *text = dt_xasprintf("%s\n%s\n%s\n\n%s\n%s\n%s",
                              "{\"version\":1,\"study\":\"1\",\"time\":1,\"signature\":\"a-b\"}",
                              "{\"version\":1,\"study\":", "[1]",
                              "{\"version\":2,\"study\":\"9\",\"signature\":\"a-b\"}",
                              "{\"version\":1,\"study\":\"2\",\"time\":2,\"signature\":\"a-b\"}",
                              "{\"version\":1,\"study\":\"3\",\"time\":3,\"signature\":\"a-b\"}");
    struct dt_history h;
    (void)state;
    assert_int_equal(mkdir(dir, 0700), 0);
    put_file("history/a-b.jsonl", text);
    put_file("history/other.txt", "no history");
    free(text);
    expect_studies(NULL, "2 1", 4);
    assert_int_equal(dt_history_read(dir, NULL, true, &h, NULL), 0);
    assert_non_null(strstr(h.warnings.v[0], "history/a-b.jsonl:2: passed over: "));
    assert_non_null(strstr(h.warnings.v[2], ":5: passed over: it is of a newer dt-tune"));
    assert_non_null(strstr(h.warnings.v[3], ":7: passed over: it was cut off"));
    dt_history_free(&h);
    /* what comes behind the torn line does not suffer from it */
    assert_int_equal(append("4", 4, "a-b", ""), 0);
    expect_studies(NULL, "4 3 2 1", 3);
    FILE *f = fopen("history/a-b.jsonl", "a");
    fwrite("{\"version\"\0\0\0\0\n", 1, 15, f);
    fclose(f);
    expect_studies(NULL, "4 3 2 1", 4);
    assert_int_equal(append("5", 5, "a-b", ""), 0);
    expect_studies(NULL, "5 4 3 2 1", 4);
}

enum { WRITERS = 8, RECORDS = 12 };

/* Large ones, that no single write() is sure to take whole. */
static void writers_at_once_lose_nothing(void **state)
{
    char *filler = dt_xcalloc(1, 300001), *rest;
    (void)state;
    memset(filler, 'x', 300000);
    rest = dt_xasprintf(",\"filler\":\"%s\"", filler);
    fflush(NULL);
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0)
            continue;
        int rc = 0;
        for (int i = 0; i < RECORDS && rc == 0; i++) {
            char *name = dt_xasprintf("%d.%d", w, i);
            struct json_object *o = record_of(name, w * 100 + i + 1, "a-b", rest);
            rc = dt_history_append(dir, o, NULL);
            json_object_put(o);
            free(name);
        }
        _exit(rc == 0 ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct dt_history h;
    assert_int_equal(dt_history_read(dir, "a-b", true, &h, NULL), 0);
    assert_int_equal(h.warnings.n, 0);
    assert_int_equal(h.n, WRITERS * RECORDS);
    for (size_t i = 0; i < h.n; i++)
        assert_string_equal(dt_json_str(h.v[i], "filler", ""), filler);
    dt_history_free(&h);
    free(filler);
    free(rest);
}

static void a_writer_waits_for_another(void **state)
{
    (void)state;
    assert_int_equal(append("1", 1, "a-b", ""), 0);
    int told[2];
    double held;
    assert_int_equal(pipe(told), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen("history/a-b.jsonl", "a");
        bool ok = f && flock(fileno(f), LOCK_EX) == 0;
        for (int i = 0; i < 2; i++) { /* that it holds it, and until when it did at least */
            held = dt_monotonic();
            ok &= write(told[1], &held, sizeof(held)) == sizeof(held);
            usleep(i ? 0 : 300000);
        }
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(read(told[0], &held, sizeof(held)), sizeof(held));
    assert_int_equal(append("2", 2, "a-b", ""), 0);
    double done = dt_monotonic();
    assert_int_equal(read(told[0], &held, sizeof(held)), sizeof(held));
    assert_true(done >= held);
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    close(told[0]);
    close(told[1]);
    expect_studies(NULL, "2 1", 0);
}

static void expect_failure(const char *folder, const char *want)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = record_of("1", 1, "a-b", "");
    assert_int_equal(dt_history_append(folder, o, &e), -1);
    if (!strstr(e.text, want))
        fail_msg("\"%s\" is not in: %s", want, e.text);
    json_object_put(o);
    dt_error_clear(&e);
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_history h;
    (void)state;
    put_file("file", "");
    expect_failure("file", "is not a directory");
    expect_failure("file/below", "file");
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mkdir("history/a-b.jsonl", 0700), 0);
    expect_failure(dir, "history/a-b.jsonl: Is a directory");
    assert_int_equal(dt_history_read("file", NULL, false, &h, &e), -1);
    assert_non_null(strstr(e.text, "file: Not a directory"));
    dt_error_clear(&e);
    if (geteuid() == 0)
        return; /* who may do everything */
    assert_int_equal(mkdir("closed", 0500), 0);
    expect_failure("closed/history", "Permission denied");
    expect_failure("closed", "Permission denied");
}

static void a_full_disk_leaves_the_history_as_it_was(void **state)
{
    struct rlimit old, small;
    struct stat st;
    (void)state;
    assert_int_equal(append("1", 1, "a-b", ""), 0);
    assert_int_equal(stat("history/a-b.jsonl", &st), 0);
    off_t before = st.st_size;
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){(rlim_t)before + 20, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    struct json_object *o = record_of("2", 2, "a-b", "");
    int rc = dt_history_append(dir, o, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    json_object_put(o);
    assert_int_equal(rc, -1);
    assert_int_equal(stat("history/a-b.jsonl", &st), 0);
    assert_int_equal(st.st_size, before);
    assert_int_equal(append("3", 3, "a-b", ""), 0);
    expect_studies(NULL, "3 1", 0);
}

/* ---- which configuration is applied ---- */

/* Appends a study of the workload; `best` is JSON or "null". */
static void add_study(const char *name, double time, const struct dt_workload *w,
                      const char *objective, const char *best)
{
    char *rest = dt_xasprintf(",\"program\":\"%s\",\"objective\":\"%s\",\"best\":%s", w->own,
                              objective, best);
    assert_int_equal(append(name, time, w->signature, rest), 0);
    free(rest);
}

#define BEST(n) "{\"config\":{\"workers\":" #n "},\"value\":1.5}"

/* What is found, "study 1 (time 1.50 s)"; or the error. Caller frees. */
static char *found(const char *script, const char *spec_text, bool asked)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *spec = spec_of(spec_text);
    struct dt_strv none = DT_STRV_INIT;
    struct dt_workload w;
    struct dt_applied a;
    dt_workload_make(&w, spec, script, &none);
    int rc = dt_history_find(dir, &w, spec, asked, "train.sh", &a, &e);
    char *text = dt_xstrdup(rc == 0 ? a.text : e.text);
    assert_int_equal(rc == 0, a.config != NULL);
    dt_applied_free(&a);
    dt_error_clear(&e);
    dt_spec_free(spec);
    return text;
}

static void expect_found(const char *script, const char *spec, bool asked, const char *want)
{
    char *text = found(script, spec, asked);
    if (!dt_starts_with(text, want))
        fail_msg("\"%s\" does not begin with \"%s\"", text, want);
    free(text);
}

#define COST "{\"objective\":{\"metric\":\"cost\"}}"
#define LOSS "{\"objective\":{\"metric\":\"loss\",\"goal\":\"minimize\"}}"

static void the_last_study_of_the_workload_is_found(void **state)
{
    struct dt_workload plain = workload(SCRIPT, "{}", NULL), cost = workload(SCRIPT, COST, NULL);
    struct dt_workload other = workload("#!/bin/sh\nother\n", "{}", NULL);
    (void)state;
    expect_found(SCRIPT, "{}", false, "no study of train.sh is known in ");
    add_study("1", 10, &cost, "cost", BEST(1));
    add_study("2", 20, &other, "time", BEST(2));
    expect_found(SCRIPT, "{}", false,
                 "study 1 (cost 1.5)"); /* the program counts, nothing was asked */
    expect_found(SCRIPT, COST, true, "study 1 (cost 1.5)");
    expect_found(SCRIPT, LOSS, true,
                 "no study of train.sh is for the objective min:loss, the last one");
    add_study("3", 30, &plain, "time", BEST(3));
    add_study("4", 40, &cost, "cost", BEST(4));
    expect_found(SCRIPT, "{}", false,
                 "study 3 (time 1.50 s)"); /* this very workload before later ones */
    add_study("5", 50, &plain, "time", "null");
    expect_found(SCRIPT, "{}", false, "study 3");
    expect_found("#!/bin/sh\n# more words\nother\n", "{}", false, "study 2");
    expect_found("#!/bin/sh\nanother\n", "{}", false, "no study of train.sh is known in ");
    expect_found(SCRIPT, "{\"hyperparameters\":{\"lr\":[1,2]}}", false, "study 4");
}

static void studies_without_a_result_are_told(void **state)
{
    struct dt_workload plain = workload(SCRIPT, "{}", NULL);
    (void)state;
    add_study("1", 10, &plain, "time", "null");
    expect_found(SCRIPT, "{}", false, "1 study of train.sh is known in ");
}

static void a_keyed_study_is_found_by_key_and_by_script(void **state)
{
    static const char keyed[] = "{\"history\":{\"key\":\"net\"}}";
    struct dt_workload w = workload(SCRIPT, keyed, NULL);
    (void)state;
    add_study("1", 10, &w, "time", BEST(1));
    expect_found(SCRIPT, keyed, false, "study 1");
    expect_found("#!/bin/sh\nother\n", keyed, false, "study 1");
    expect_found(SCRIPT, "{}", false, "study 1");
    expect_found("#!/bin/sh\nother\n", "{}", false, "no study");
}

static void expect_named(const char *study, int workers, const char *want)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_applied a;
    int rc = dt_history_find_study(dir, study, &a, &e);
    const char *text = rc == 0 ? a.text : e.text;
    if (!strstr(text, want))
        fail_msg("\"%s\" is not in: %s", want, text);
    assert_int_equal(rc == 0 ? dt_json_int(a.config, "workers", 0) : 0, workers);
    dt_applied_free(&a);
    dt_error_clear(&e);
}

static void a_study_is_found_by_folder_job_id_name_and_key(void **state)
{
    struct dt_workload plain = workload(SCRIPT, "{}", NULL);
    (void)state;
    add_study("7", 10, &plain, "time", BEST(7));
    add_study("8", 20, &plain, "time", BEST(8));
    add_study("9", 30, &plain, "time", "null");
    assert_int_equal(append("k", 5, "0-0", ",\"key\":\"net\",\"best\":" BEST(4)), 0);
    assert_int_equal(mkdir("dt-tune-8", 0700), 0);
    put_file("dt-tune-8/journal.jsonl", "");
    expect_named("8", 0, "dt-tune-8: the study has found no configuration (yet)");
    put_file("dt-tune-8/best.json", "{\"workers\":88}");
    expect_named("8", 88, "study dt-tune-8");
    expect_named("dt-tune-8", 88, "study dt-tune-8");
    put_file("dt-tune-8/best.json", "{");
    expect_named("8", 0, "dt-tune-8/best.json:1: not valid JSON");
    expect_named("7", 7, "study 7 (time 1.50 s)");
    expect_named("/s/8", 8, "study 8");
    expect_named("9", 0, "no trial of this study succeeded");
    expect_named("net", 4, "study k");
    expect_named(plain.program, 8, "study 8"); /* the last one that has a result */
    expect_named("7000", 0, "is neither a study's folder nor one of those in ");
    expect_named("", 0, "the study is missing");
    assert_int_equal(mkdir("plain", 0700), 0);
    expect_named("plain", 0, "is neither a study's folder");
}

static void the_layout_is_what_the_study_meant(void **state)
{
    static const struct {
        const char *config, *layout;
        bool kept;
    } cases[] = {
        {"{\"ps\":1,\"workers\":2,\"layout\":\"het\",\"lr\":0.1}", "het", true},
        {"{\"ps\":1,\"workers\":2,\"layout\":\"packed\"}", "packed", false},
        {"{\"ps\":1,\"workers\":2}", "packed", false},
        {"{\"ps\":0,\"workers\":2,\"layout\":\"het\"}", "packed", false},
        {"{\"workers\":2}", "packed", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_object *config = json_of(cases[i].config), *doc = dt_history_spec(config, NULL);
        struct dt_error e = DT_ERROR_INIT;
        struct dt_spec *spec = dt_spec_parse(doc, NULL, "stored", &e);
        struct dt_job job = {.tasks = 3, .cpus = 1};
        struct dt_space_source source = {spec, &job, NULL};
        const char *why;
        struct dt_space *space = dt_space_generate(&source, &why, &e);
        assert_non_null(space);
        double *x = dt_xcalloc(space->n, sizeof(double));
        assert_string_equal(dt_json_str(doc, "layout", ""), cases[i].layout);
        assert_int_equal(dt_json_get(config, "layout") != NULL, cases[i].kept);
        assert_int_equal(dt_config_from_json(space, config, x, &e), 0);
        assert_int_equal(space->npoints, 1);
        free(x);
        dt_space_free(space);
        dt_spec_free(spec);
        json_object_put(doc);
        json_object_put(config);
    }
}

/* ---- --dt-apply beside other options ---- */

/* "1", "0", or the error. Caller frees. */
static char *applies(const char *script_lines, const char *words)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv argv = DT_STRV_INIT;
    char *none[] = {NULL}, *script = dt_xasprintf("#!/bin/sh\n%s\ntrue\n", script_lines);
    put_file("train.sh", script);
    dt_strv_add(&argv, "sbatch");
    dt_strv_split(&argv, words, " ");
    dt_strv_add(&argv, "train.sh");
    struct dt_submission *s = dt_submission_read(argv.v, none, -1, NULL, &e);
    assert_non_null(s);
    int rc = dt_setup_applies(s, &e);
    char *text = dt_xstrdup(rc < 0 ? e.text : rc ? "1" : "0");
    dt_submission_free(s);
    dt_strv_free(&argv);
    dt_error_clear(&e);
    free(script);
    return text;
}

static void the_option_with_precedence_counts(void **state)
{
    static const struct {
        const char *lines, *words, *want;
    } cases[] = {
        {"", "", "0"},
        {"", "--dt-tune", "0"},
        {"", "--dt-apply", "1"},
        {"", "--dt-apply=7 --dt-dry-run --dt-objective=cost", "1"},
        {"#SBATCH --dt-apply", "", "1"},
        {"#SBATCH --dt-tune --dt-ps=0-4 --dt-param=lr=1..2", "--dt-apply", "1"},
        {"#SBATCH --dt-apply", "--dt-tune --dt-ps=0-4", "0"},
        {"#SBATCH --dt-apply", "--dt-resume=7", "0"},
        {"#SBATCH --dt-apply", "--dt-config=c.json", "0"},
        {"", "--dt-apply --dt-tune", "--dt-apply and --dt-tune exclude each other: "},
        {"#SBATCH --dt-tune\n#SBATCH --dt-apply", "",
         "train.sh:3: --dt-apply and train.sh:2: --dt-tune exclude each other: "},
        {"", "--dt-apply --dt-resume=7", "--dt-apply and --dt-resume exclude each other: "},
        {"", "--dt-apply --dt-config=c", "--dt-apply and --dt-config exclude each other: "},
        {"", "--dt-apply --here", "--dt-apply and --here exclude each other: "},
        {"", "--dt-workers=2 --dt-apply", "--dt-apply and --dt-workers exclude each other: "},
        {"#SBATCH --dt-apply", "--dt-ps=2",
         "train.sh:2: --dt-apply and --dt-ps exclude each other: "},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *got = applies(cases[i].lines, cases[i].words);
        if (!dt_starts_with(got, cases[i].want))
            fail_msg("%s | %s: %s", cases[i].lines, cases[i].words, got);
        free(got);
    }
}

/* ---- past observations ---- */

static struct dt_job job3 = {.tasks = 3, .cpus = 1};
static struct dt_space_source source;

/* The caller frees both. */
static struct dt_space *space_of(const char *text, struct dt_spec **spec)
{
    const char *why;
    *spec = spec_of(text);
    source = (struct dt_space_source){*spec, &job3, NULL};
    struct dt_space *space = dt_space_generate(&source, &why, NULL);
    assert_non_null(space);
    return space;
}

static void add_observations(const char *name, double time, const struct dt_workload *w,
                             const char *list)
{
    char *rest = dt_xasprintf(",\"observations\":[%s]", list);
    assert_int_equal(append(name, time, w->signature, rest), 0);
    free(rest);
}

/* "1:ps=0 workers=2 ok 3 30": study, configuration, status, value, cost; + for a repeat. */
static void expect_past(const struct dt_workload *w, bool others, const char *not_this,
                        const char *spec_text, bool by_nodes, const char *want)
{
    struct dt_spec *spec;
    struct dt_space *space = space_of(spec_text, &spec);
    struct dt_past *p = dt_history_load(dir, w, others, not_this, space, by_nodes, NULL);
    struct dt_strv all = DT_STRV_INIT;
    assert_non_null(p);
    for (size_t k = 0; k < p->nstudies; k++) {
        for (size_t i = p->studies[k].first; i < p->studies[k].first + p->studies[k].n; i++) {
            const struct dt_observation *o = &p->obs[i];
            char *config = dt_config_text(space, o->x);
            assert_ptr_equal(o->x, p->x + i * space->n);
            dt_strv_addf(&all, "%s%s:%s %s %g %g%s%.0zu", p->studies[k].name,
                         p->studies[k].same ? "" : "~", config, dt_status_names[o->status],
                         o->value, o->cost, o->again ? "+" : "", o->again);
            free(config);
        }
    }
    char *got = dt_strv_join(&all, "; ");
    assert_string_equal(got, want);
    free(got);
    dt_strv_free(&all);
    dt_past_free(p);
    dt_space_free(space);
    dt_spec_free(spec);
}

#define OBS(config, rest) "{\"config\":{" config "}," rest "}"
#define OK "\"status\":\"ok\",\"value\":3,\"duration_s\":10,\"nodes\":2"

static void observations_are_mapped_to_the_present_space(void **state)
{
    struct dt_workload w = workload(SCRIPT, "{\"hyperparameters\":{\"lr\":[1]}}", NULL);
    static const char spec[] =
        "{\"dt\":{\"ps\":{\"low\":0,\"high\":2},\"workers\":{\"low\":1,\"high\":8},"
        "\"worker_mem\":[\"1G\",\"2G\"]},\"hyperparameters\":{\"lr\":{\"low\":0.1,\"high\":1},"
        "\"opt\":[\"sgd\",\"adam\"],\"momentum\":{\"low\":0,\"high\":1.5,\"when\":\"opt == "
        "\\\"sgd\\\"\"}}}";
    (void)state;
#define ON "\"worker_mem\":\"1G\",\"lr\":0.5,"
#define ADAM ON "\"opt\":\"adam\""
    static const char *const tried[] = {
        /* whole; a number in another spelling; repeated */
        OBS("\"ps\":1,\"workers\":2,\"worker_mem\":\"2048M\",\"layout\":\"het\",\"lr\":0.5,"
            "\"opt\":\"adam\"", OK),
        OBS("\"ps\":1,\"workers\":2,\"worker_mem\":\"2G\",\"layout\":\"het\",\"lr\":0.5,"
            "\"opt\":\"adam\"", OK),
        /* neither servers nor layout; as the script has it */
        OBS("\"workers\":8,\"worker_mem\":\"1G\",\"lr\":null,\"opt\":\"sgd\",\"momentum\":0.5",
            "\"status\":\"failed\""),
        /* outside: a number, a label, a null that is no hyperparameter's */
        OBS("\"ps\":1,\"workers\":9," ADAM, OK),
        OBS("\"ps\":1,\"workers\":1,\"worker_mem\":\"4G\",\"lr\":0.5,\"opt\":\"adam\"", OK),
        OBS("\"ps\":1,\"workers\":1," ON "\"opt\":\"rms\"", OK),
        OBS("\"ps\":1,\"workers\":null," ADAM, OK),
        /* a parameter is missing, one is too many, a conditional one is missing or has no place */
        OBS("\"ps\":1,\"workers\":1,\"worker_mem\":\"1G\",\"opt\":\"adam\"", OK),
        OBS("\"ps\":1,\"workers\":1," ADAM ",\"x\":1", OK),
        OBS("\"ps\":1,\"workers\":1," ON "\"opt\":\"sgd\"", OK),
        OBS("\"ps\":1,\"workers\":1," ADAM ",\"momentum\":0.1", OK),
        /* nothing that could be learnt from */
        OBS("\"ps\":1,\"workers\":3," ADAM, "\"status\":\"ok\""),
        OBS("\"ps\":1,\"workers\":3," ADAM, "\"status\":\"pending\""),
        OBS("\"ps\":1,\"workers\":3," ADAM, "\"status\":\"void\",\"value\":1"),
        "7",
        "{}",
        /* a bound */
        OBS("\"ps\":1,\"workers\":3," ADAM,
            "\"status\":\"censored\",\"value\":4,\"duration_s\":2"),
    };
    struct dt_strv list = DT_STRV_INIT;
    for (size_t i = 0; i < COUNT(tried); i++)
        dt_strv_add(&list, tried[i]);
    char *all = dt_strv_join(&list, ",");
    add_observations("1", 10, &w, all);
    free(all);
    dt_strv_free(&list);
    expect_past(&w, false, NULL, spec, true,
                "1:ps=1 workers=2 worker_mem=2G layout=het lr=0.5 opt=adam ok 3 20; "
                "1:ps=1 workers=2 worker_mem=2G layout=het lr=0.5 opt=adam ok 3 20+1; "
                "1:ps=0 workers=8 worker_mem=1G layout=packed opt=sgd momentum=0.5 failed nan 0; "
                "1:ps=1 workers=3 worker_mem=1G layout=packed lr=0.5 opt=adam censored 4 2");
}

/* What a study keeps of its past is all that it learnt from it. */
static void a_past_comes_back_from_its_json(void **state)
{
    struct dt_workload w = workload(SCRIPT, "{}", NULL);
    struct dt_spec *spec;
    struct dt_space *space = space_of("{\"dt\":{\"workers\":[1,2,3,4]}}", &spec);
    (void)state;
    for (int i = 0; i < 10; i++) {
        char *name = dt_xasprintf("json%d", i);
        add_observations(name, 1000 + i, &w,
                         OBS("\"workers\":2", OK) "," OBS("\"workers\":2", OK) "," OBS(
                             "\"workers\":3", "\"status\":\"failed\""));
        free(name);
    }
    struct dt_past *p = dt_history_load(dir, &w, false, NULL, space, true, NULL);
    struct json_object *json = dt_past_to_json(p, space);
    struct dt_past *q = dt_past_from_json(json, space), *none = dt_past_from_json(NULL, space);
    assert_int_equal(q->nstudies, DT_PAST_STUDIES);
    assert_string_equal(q->studies[0].name, "json9");
    assert_true(q->studies[0].time == 1000 + 9 && q->studies[0].same);
    assert_int_equal(q->nobs, 3 * DT_PAST_STUDIES);
    for (size_t i = 0; i < q->nobs; i++) {
        const struct dt_observation *a = &p->obs[i], *b = &q->obs[i];
        assert_true(dt_config_equal(a->x, b->x, space->n));
        assert_true(a->status == b->status && a->again == b->again && a->cost == b->cost);
        assert_true(a->value == b->value || (isnan(a->value) && isnan(b->value)));
    }
    assert_int_equal(none->nobs + none->nstudies, 0);
    dt_past_free(p);
    dt_past_free(q);
    dt_past_free(none);
    json_object_put(json);
    dt_space_free(space);
    dt_spec_free(spec);
}

/* Of another program, but asked the same. */
static void studies_are_loaded_by_name(void **state)
{
    static const char text[] =
        "{\"dt\":{\"workers\":[1,2,3,4]},\"history\":{\"from\":[\"dt-tune-n1\"]}}";
    struct dt_workload mine = workload(SCRIPT, "{}", NULL), cost = workload(SCRIPT, COST, NULL);
    struct dt_workload other = workload("#!/bin/sh\nother\n", "{}", NULL);
    struct dt_spec *spec;
    struct dt_space *space = space_of(text, &spec);
    struct dt_strv names = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_int_equal(spec->history_from.n, 1);
    add_observations("n1", 20, &other, OBS("\"workers\":2", OK));
    add_observations("n2", 30, &cost, OBS("\"workers\":2", OK));
    struct dt_past *p = dt_history_load_named(dir, &mine, &spec->history_from, space, false, &e);
    assert_non_null(p);
    assert_int_equal(p->nstudies, 1);
    assert_string_equal(p->studies[0].name, "n1");
    assert_false(p->studies[0].same);
    dt_past_free(p);
    dt_strv_add(&names, "n2");
    assert_null(dt_history_load_named(dir, &mine, &names, space, false, &e));
    assert_non_null(strstr(e.text, "study n2 was of another objective"));
    dt_error_clear(&e);
    dt_strv_free(&names);
    dt_strv_add(&names, "n3");
    assert_null(dt_history_load_named(dir, &mine, &names, space, false, &e));
    assert_non_null(strstr(e.text, "there is no study \"n3\" in "));
    dt_error_clear(&e);
    dt_strv_free(&names);
    dt_space_free(space);
    dt_spec_free(spec);
}

static void a_study_of_which_nothing_ran_is_no_past(void **state)
{
    struct dt_workload w = workload(SCRIPT, "{}", NULL);
    static const char spec[] = "{\"dt\":{\"workers\":[1,2,3,4]}}";
    (void)state;
    add_observations("1", 10, &w, OBS("\"workers\":1", OK));
    add_observations("2", 20, &w, OBS("\"workers\":2", "\"status\":\"failed\""));
    expect_past(&w, false, NULL, spec, false, "1:workers=1 ok 3 10");
}

static void what_a_smaller_space_implies_is_no_obstacle(void **state)
{
    struct dt_workload w = workload(SCRIPT, "{}", NULL);
    (void)state;
    add_observations("1", 10, &w,
                     OBS("\"ps\":0,\"workers\":2,\"layout\":\"packed\"",
                         OK) "," OBS("\"ps\":1,\"workers\":3,\"layout\":\"packed\"",
                                     OK) "," OBS("\"ps\":0,\"workers\":4,\"layout\":\"het\"", OK));
    expect_past(&w, false, NULL, "{\"dt\":{\"workers\":[1,2,3,4]}}", false, "1:workers=2 ok 3 10");
    expect_past(&w, false, NULL, "{\"dt\":{\"ps\":[1],\"workers\":[1,2,3]},\"layout\":\"packed\"}",
                false, "1:ps=1 workers=3 ok 3 10");
}

static void other_programs_are_included_when_asked_for(void **state)
{
    struct dt_workload mine = workload(SCRIPT, "{}", NULL);
    struct dt_workload other = workload("#!/bin/sh\nother\n", "{}", NULL);
    struct dt_workload cost = workload(SCRIPT, COST, NULL);
    static const char spec[] = "{\"dt\":{\"workers\":{\"low\":1,\"high\":8}}}";
    (void)state;
    add_observations("1", 10, &mine, OBS("\"workers\":1", OK));
    add_observations("2", 20, &other, OBS("\"workers\":2", OK));
    add_observations("3", 30, &mine, OBS("\"workers\":3", OK) "," OBS("\"workers\":4", OK));
    add_observations("4", 40, &cost, OBS("\"workers\":5", OK));
    add_observations("5", 50, &mine, OBS("\"workers\":99", OK));
    expect_past(&mine, false, NULL, spec, false,
                "3:workers=3 ok 3 10; 3:workers=4 ok 3 10; 1:workers=1 ok 3 10");
    expect_past(&mine, true, NULL, spec, false,
                "3:workers=3 ok 3 10; 3:workers=4 ok 3 10; 2~:workers=2 ok 3 10; "
                "1:workers=1 ok 3 10");
    expect_past(&mine, true, "/s/3", spec, false, "2~:workers=2 ok 3 10; 1:workers=1 ok 3 10");
    expect_past(&cost, false, NULL, spec, false, "4:workers=5 ok 3 10");
}

static void nulls_of_another_program_mean_nothing_here(void **state)
{
    struct dt_workload mine = workload(SCRIPT, "{\"hyperparameters\":{\"lr\":[1]}}", NULL);
    struct dt_workload other =
        workload("#!/bin/sh\nx\n", "{\"hyperparameters\":{\"lr\":[1]}}", NULL);
    static const char spec[] =
        "{\"dt\":{\"workers\":[1,2]},\"hyperparameters\":{\"lr\":{\"low\":0,\"high\":1}}}";
    (void)state;
    add_observations("1", 10, &mine, OBS("\"workers\":1,\"lr\":null", OK));
    add_observations("2", 5, &other,
                     OBS("\"workers\":1,\"lr\":null", OK) "," OBS("\"workers\":2,\"lr\":1", OK));
    expect_past(&mine, true, NULL, spec, false, "1:workers=1 ok 3 10; 2~:workers=2 lr=1 ok 3 10");
}

/* ---- SPEC ---- */

static void the_section_of_spec_is_checked(void **state)
{
    static const struct {
        const char *text, *error; /* NULL: it is right */
    } cases[] = {
        {"{\"history\": false}", NULL},
        {"{\"history\": true}", NULL},
        {"{\"history\": {}}", NULL},
        {"{\"history\": {\"key\": \"a key\"}}", NULL},
        {"{\"history\": 1}", "S.json:1: history: false or an object like {\"key\": "},
        {"{\"history\": \"x\"}", "S.json:1: history: false or an object"},
        {"{\"history\": null}", "S.json:1: history: a value is needed here, this is null"},
        {"{\"history\": {\"kye\": \"a\"}}",
         "S.json:1: history.kye: unknown key; did you mean \"key\"?"},
        {"{\"history\": {\"key\": 1}}", "S.json:1: history.key: a string is needed here"},
        {"{\"history\": {\"key\": \"\"}}", "S.json:1: history.key: an empty value"},
        {"{\"history\": {\"key\": \"a\\nb\"}}",
         "S.json:1: history.key: a key cannot have a control"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *json = json_of(cases[i].text);
        struct dt_spec *s = dt_spec_parse(json, cases[i].text, "S.json", &e);
        assert_int_equal(s != NULL, cases[i].error == NULL);
        if (cases[i].error && !dt_starts_with(e.text, cases[i].error))
            fail_msg("%s", e.text);
        if (s)
            assert_int_equal(s->no_history, i == 0);
        dt_spec_free(s);
        json_object_put(json);
        dt_error_clear(&e);
    }
    char *name = dt_xcalloc(1, 202);
    memset(name, 'k', 201);
    char *text = dt_xasprintf("{\"history\": {\"key\": \"%s\"}}", name);
    struct json_object *json = json_of(text);
    assert_null(dt_spec_parse(json, text, "S.json", NULL));
    json_object_put(json);
    free(text);
    free(name);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_base, remove_base)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_does_not_matter_is_not_in_the_signature),
        TEST(what_matters_is_in_the_signature),
        TEST(a_key_stands_for_the_program_only),
        TEST(the_folder_is_found),
        TEST(the_last_record_of_each_study_counts),
        TEST(what_was_torn_or_damaged_is_passed_over),
        TEST(writers_at_once_lose_nothing),
        TEST(a_writer_waits_for_another),
        TEST(a_folder_that_cannot_be_written_is_an_error),
        TEST(a_full_disk_leaves_the_history_as_it_was),
        TEST(the_last_study_of_the_workload_is_found),
        TEST(studies_without_a_result_are_told),
        TEST(a_keyed_study_is_found_by_key_and_by_script),
        TEST(a_study_is_found_by_folder_job_id_name_and_key),
        TEST(the_layout_is_what_the_study_meant),
        TEST(the_option_with_precedence_counts),
        TEST(observations_are_mapped_to_the_present_space),
        TEST(a_study_of_which_nothing_ran_is_no_past),
        TEST(what_a_smaller_space_implies_is_no_obstacle),
        TEST(a_past_comes_back_from_its_json),
        TEST(studies_are_loaded_by_name),
        TEST(other_programs_are_included_when_asked_for),
        TEST(nulls_of_another_program_mean_nothing_here),
        TEST(the_section_of_spec_is_checked),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
