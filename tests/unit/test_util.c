/* util: numbers, text, JSON, tables, files, processes. */
#include "util/util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

#define REPLACED "--replaced"
static char *folder; /* an empty folder of our own */

static char *in_folder(const char *name)
{
    return dt_xasprintf("%s/%s", folder, name);
}

static char *file_with(const char *name, const char *text)
{
    struct dt_error e = DT_ERROR_INIT;
    char *path = in_folder(name);
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, &e), 0);
    return path;
}

/* ---- errors, memory, lists ---- */

static void errors_are_one_line_with_their_place(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_int_equal(dt_fail(&e, "no %s", "file"), -1);
    assert_int_equal(dt_fail_at(&e, "%s:%d", "a.json", 3), -1);
    assert_string_equal(e.text, "a.json:3: no file");
    dt_fail(&e, "again: %s", e.text); /* the old text as an argument */
    assert_string_equal(e.text, "again: a.json:3: no file");
    dt_error_clear(&e);
    assert_null(e.text);
    assert_int_equal(dt_fail(NULL, "nobody listens"), -1);
    assert_int_equal(dt_fail_at(NULL, "nobody"), -1);
}

static void buffers_and_lists_grow(void **state)
{
    struct dt_buf b = DT_BUF_INIT;
    struct dt_strv l = DT_STRV_INIT;
    (void)state;
    for (int i = 0; i < 1000; i++)
        dt_buf_addf(&b, "%d,", i);
    char *text = dt_buf_take(&b);
    assert_int_equal(strlen(text), 10 * 2 + 90 * 3 + 900 * 4);
    assert_null(b.s);
    dt_strv_split(&l, text, ",");
    assert_int_equal(l.n, 1000);
    assert_string_equal(l.v[999], "999");
    assert_null(l.v[1000]);
    free(text);
    dt_strv_free(&l);
    dt_strv_split(&l, ",a,,b c,", ",");
    char *joined = dt_strv_join(&l, "|");
    assert_string_equal(joined, "a|b c");
    free(joined);
    dt_strv_free(&l);
    text = dt_buf_take(&b);
    assert_string_equal(text, "");
    free(text);
}

/* ---- numbers ---- */

static void doubles_are_read_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *text;
        double x;
    } good[] = {{"0", 0},          {"-1.5", -1.5}, {"1e-4", 1e-4},
                {"0.00001", 1e-5}, {"+3", 3},      {"1E3", 1000}};
    static const char *const bad[] = {"",      " 1",   "1 ", "1,5", "nan", "inf", "-infinity",
                                      "1e999", "0x10", "1x", "abc", "1e",  "--1"};
    double x;
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(dt_parse_double(good[i].text, &x), 0);
        assert_true(x == good[i].x);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (dt_parse_double(bad[i], &x) == 0)
            fail_msg("\"%s\" was read as %g", bad[i], x);
}

static void integers_are_read_whole_or_not_at_all(void **state)
{
    static const char *const bad[] = {"", "1.0", "1e3", " 1", "1 ", "9223372036854775808", "x"};
    int64_t x;
    (void)state;
    assert_int_equal(dt_parse_int64("-9223372036854775808", &x), 0);
    assert_true(x == INT64_MIN);
    assert_int_equal(dt_parse_int64("007", &x), 0);
    assert_int_equal(x, 7);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (dt_parse_int64(bad[i], &x) == 0)
            fail_msg("\"%s\" was read", bad[i]);
}

static void memory_is_mebibytes_rounded_up(void **state)
{
    static const struct {
        const char *text;
        uint64_t mib;
    } good[] = {{"512", 512}, {"4G", 4096}, {"4g", 4096}, {"1T", 1048576}, {"2048K", 2},
                {"1K", 1},    {"1025K", 2}, {"0", 0},     {"4GB", 4096},   {"100MB", 100}};
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "1.5G",
                                      "4B",
                                      "4GG",
                                      "4 G",
                                      "1P",
                                      "4GBB",
                                      "99999999999999999999",
                                      "18446744073709551615T"};
    uint64_t mib;
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(dt_parse_mem(good[i].text, &mib), 0);
        assert_int_equal(mib, good[i].mib);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (dt_parse_mem(bad[i], &mib) == 0)
            fail_msg("\"%s\" was read as %lu MiB", bad[i], (unsigned long)mib);
}

static void time_is_as_slurm_writes_it(void **state)
{
    static const struct {
        const char *text;
        double s;
    } good[] = {{"90", 5400},     {"1:30", 90},     {"1:30:00", 5400},  {"2-0", 172800},
                {"1-12", 129600}, {"1-2:3", 93780}, {"1-2:3:4", 93784}, {"0", 0},
                {"0:10", 10},     {"1:02:03", 3723}};
    static const char *const bad[] = {"",          "1:", ":1",  "1:2:3:4", "1-", "-5",
                                      "1-2:3:4:5", "1h", "1.5", "1:2-3",   " 1"};
    double s;
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(dt_parse_time(good[i].text, &s), 0);
        assert_true(s == good[i].s);
    }
    assert_int_equal(dt_parse_time("UNLIMITED", &s), 0);
    assert_true(isinf(s));
    for (size_t i = 0; i < COUNT(bad); i++)
        if (dt_parse_time(bad[i], &s) == 0)
            fail_msg("\"%s\" was read as %g s", bad[i], s);
}

static void doubles_are_written_short_and_read_back(void **state)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {{20, "20"},
                 {150, "150"},
                 {0.1, "0.1"},
                 {1e-5, "1e-05"},
                 {-3, "-3"},
                 {-0.0, "0"},
                 {123456.5, "123456.5"},
                 {1e300, "1e+300"},
                 {100000000, "100000000"},
                 {0.30000000000000004, "0.30000000000000004"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *s = dt_format_double(cases[i].x);
        assert_string_equal(s, cases[i].text);
        free(s);
    }
    unsigned seed = 7;
    for (int i = 0; i < 1000; i++) {
        double x = exp((double)rand_r(&seed) / RAND_MAX * 100 - 50), y;
        char *s = dt_format_double(x);
        assert_int_equal(dt_parse_double(s, &y), 0);
        assert_true(x == y);
        free(s);
    }
}

static void durations_are_written_for_people(void **state)
{
    static const struct {
        double s;
        const char *text;
    } cases[] = {{12.34, "12.3 s"},   {0, "0.0 s"},        {59.99, "1:00"},
                 {83, "1:23"},        {3599.6, "1:00:00"}, {3723, "1:02:03"},
                 {90000, "25:00:00"}, {INFINITY, "-"},     {NAN, "-"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *s = dt_format_duration(cases[i].s);
        assert_string_equal(s, cases[i].text);
        free(s);
    }
}

static void the_nearest_word_is_one_that_may_be_meant(void **state)
{
    static const char *const words[] = {"workers", "worker_cpus", "ps", "batch_size"};
    static const struct {
        const char *word, *near;
    } cases[] = {{"worker", "workers"},
                 {"wokrers", "workers"},
                 {"worker_cpu", "worker_cpus"},
                 {"sp", "ps"},
                 {"batchsize", "batch_size"},
                 {"xy", NULL},
                 {"learning_rate", NULL},
                 {"", NULL},
                 {"pss", "ps"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *near = dt_nearest(cases[i].word, words, COUNT(words));
        if (!near != !cases[i].near || (near && strcmp(near, cases[i].near) != 0))
            fail_msg("%s: %s", cases[i].word, near ? near : "none");
    }
    assert_null(dt_nearest("x", NULL, 0));
}

/* ---- JSON ---- */

static const char *json_error(const char *text)
{
    static struct dt_error e = DT_ERROR_INIT;
    dt_error_clear(&e);
    struct json_object *o = dt_json_parse(text, "f", &e);
    if (o) {
        json_object_put(o);
        return "accepted";
    }
    static char *last;
    free(last);
    last = dt_xstrdup(e.text);
    dt_error_clear(&e);
    return last;
}

static void json_is_strict(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{\"a\": 1}", "accepted"},
        {"[1, 2]\n", "accepted"},
        {"{\"gr\xc3\xb6\xc3\x9f"
         "e\": \"\xe2\x82\xac \xff\"}",
         "accepted"},
        {"{\"a\": \"\xc3\xbc\",\n\"a\": 1}", "f:2: the key \"a\" stands twice in one object"},
        {"{\"a\": {\"b\": 1}, \"c\": {\"b\": 2}}", "accepted"},
        {"{\"a\": 1,\n \"a\": 2}", "f:2: the key \"a\" stands twice in one object"},
        {"{\"x\": {\n\n\"k\": 1, \"k\": 1}}", "f:3: the key \"k\" stands twice in one object"},
        {"[{\"k\": 1},\n{\"k\": [\"]\", {\"q\": \"}\"}], \"k\": 1}]",
         "f:2: the key \"k\" stands twice in one object"},
        {"{\"a\": 1} x", "f:1: not valid JSON: unexpected character"},
        {"{\"a\": 1}\n{}", "f:2: not valid JSON: unexpected character"},
        {"{\"a\": 1", "f:1: not valid JSON: unexpected end of data"},
        {"", "f:1: not valid JSON: unexpected end of data"},
        {"{\"a\":\n-}", "f:2: not valid JSON: a number is malformed or too large"},
        {"null", "f: null is not enough, an object is needed"},
    };
    static const char *const refused[] = {"{\"a\": 1,}",
                                          "{'a': 1}",
                                          "{a: 1}",
                                          "[1,]",
                                          "// c\n{}",
                                          "{\"a\": 01}",
                                          "{\"a\": tru}",
                                          "{\"a\" 1}",
                                          "{\"a\": \"\xc3\xbc\",}",
                                          "{\"a\": 1\xc3\xbc}",
                                          "{\"a\": \"\xc3\xbc\"} \xc3"};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(json_error(cases[i].text), cases[i].error);
    for (size_t i = 0; i < COUNT(refused); i++)
        if (strcmp(json_error(refused[i]), "accepted") == 0)
            fail_msg("%s was accepted", refused[i]);
}

/* Bytes that are no UTF-8 too: a path may hold them, and a journal must give it back. */
static void json_text_comes_back_as_it_was(void **state)
{
    static const char text[] = "{\"\xc3\xbc\":\"\xe2\x82\xac\xff\",\"b\":[\"\x80\",1.5,\"\\n\"]}";
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o = dt_json_parse(text, "f", &e);
    char *back = dt_json_text(o);
    (void)state;
    assert_string_equal(back, text);
    free(back);
    json_object_put(o);
}

static void json_lines_are_found_by_path(void **state)
{
    static const char text[] =
        "{\n \"dt\": {\"low\": \"ps\",\n  \"ps\": {\n   \"low\": 1}},\n \"x\": [{\"low\": 2}],\n"
        " \"low\": 3, \"a\\\"b\":\n 4}";
    (void)state;
    assert_int_equal(dt_json_line(text, (const char *[]){"dt", NULL}), 2);
    assert_int_equal(dt_json_line(text, (const char *[]){"dt", "ps", NULL}), 3);
    assert_int_equal(dt_json_line(text, (const char *[]){"dt", "ps", "low", NULL}), 4);
    assert_int_equal(dt_json_line(text, (const char *[]){"low", NULL}), 6);
    assert_int_equal(dt_json_line(text, (const char *[]){"x", "low", NULL}), 0);
    assert_int_equal(dt_json_line(text, (const char *[]){"dt", "workers", NULL}), 0);
}

static void json_values_have_defaults(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *o =
        dt_json_parse("{\"s\": \"t\", \"n\": 1.5, \"i\": 3, \"b\": true, \"z\": null}", "f", &e);
    (void)state;
    assert_string_equal(dt_json_str(o, "s", "?"), "t");
    assert_string_equal(dt_json_str(o, "n", "?"), "?");
    assert_true(dt_json_num(o, "n", 0) == 1.5 && dt_json_num(o, "i", 0) == 3 &&
                dt_json_num(o, "s", 9) == 9);
    assert_int_equal(dt_json_int(o, "i", 0), 3);
    assert_int_equal(dt_json_int(o, "n", -1), -1);
    assert_true(dt_json_bool(o, "b", false) && !dt_json_bool(o, "i", false));
    assert_null(dt_json_get(o, "z"));
    assert_null(dt_json_get(NULL, "z"));
    json_object_put(o);
}

static void json_numbers_are_exact(void **state)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {{4, "4"},   {0.1, "0.1"},    {1e-300, "1e-300"},
                 {-7, "-7"}, {1e20, "1e+20"}, {1764441600.125, "1764441600.125"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_object *o = dt_json_number(cases[i].x);
        char *text = dt_json_text(o);
        assert_string_equal(text, cases[i].text);
        assert_true(json_object_get_double(o) == cases[i].x);
        free(text);
        json_object_put(o);
    }
    assert_true(!dt_json_number(NAN) && !dt_json_number(-INFINITY)); /* no JSON has them */
}

/* ---- tables ---- */

static struct dt_table *table(const char *text, struct dt_error *e)
{
    char *path = file_with("t.csv", text);
    struct dt_table *t = dt_table_read(path, e);
    free(path);
    return t;
}

static void tables_have_columns_and_cells(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_table *t = table("\xef\xbb\xbfps,name,v\r\n1,\"a, \"\"b\"\"\",0.5\r\n2,,\r\n", &e);
    (void)state;
    assert_non_null(t);
    assert_int_equal(t->nrows, 2);
    assert_int_equal(dt_table_column(t, "ps", &e), 0);
    assert_string_equal(dt_table_cell(t, 0, 1), "a, \"b\"");
    assert_string_equal(dt_table_cell(t, 1, 2), "");
    assert_int_equal(dt_table_column(t, "nmae", &e), -1);
    assert_string_equal(e.text, "no column \"nmae\"; did you mean \"name\"?");
    dt_error_clear(&e);
    dt_table_free(t);
}

static void broken_tables_are_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "no rows below the header line"},
        {"a,b\n", "no rows below the header line"},
        {"a,b\n1\n", "2: 1 fields, the header has 2"},
        {"a,b\n1,2\n1,2,3\n4,5\n", "3: 3 fields, the header has 2"},
        {"a,b\n1,x\"y\n", "2: not valid CSV (a stray quote?)"},
        {"a,b\n1,\"2\n3,4\n", "2: not valid CSV (a stray quote?)"},
    };
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_null(table(cases[i].text, &e));
        if (!strstr(e.text, cases[i].error))
            fail_msg("%s; expected %s", e.text, cases[i].error);
    }
    assert_null(dt_table_read(folder, &e));
    assert_non_null(strstr(e.text, "is a directory"));
    dt_error_clear(&e);
}

/* ---- files ---- */

static void files_are_written_whole_and_read_back(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    char *path = file_with("f", "hello"), *text;
    size_t len;
    struct stat st;
    (void)state;
    text = dt_read_file(path, 5, &len, &e);
    assert_string_equal(text, "hello");
    assert_int_equal(len, 5);
    free(text);
    assert_null(dt_read_file(path, 4, &len, &e));
    assert_non_null(strstr(e.text, "larger than the limit"));
    assert_int_equal(dt_write_file(path, "x", 1, 0600, &e), 0);
    text = dt_read_file(path, 100, NULL, &e);
    assert_string_equal(text, "x");
    free(text);
    char *deep = in_folder("a/b/c"), *below = in_folder("f/d"), *none = in_folder("none");
    assert_int_equal(dt_mkdirs(deep, &e), 0);
    assert_int_equal(dt_mkdirs(deep, &e), 0);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(dt_mkdirs(below, &e), -1);
    assert_non_null(strstr(e.text, "a file of that name is there"));
    assert_int_equal(dt_mkdirs("", &e), -1);
    assert_null(dt_read_file(none, 10, NULL, &e));
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(dt_write_file("/proc/no/such", "x", 1, 0600, &e), -1);
    free(path);
    free(deep);
    free(below);
    free(none);
    dt_error_clear(&e);
}

/* ---- processes ---- */

static void programs_run_to_their_end(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r;
    (void)state;
    assert_int_equal(dt_proc_run((char *[]){"sh", "-c", "echo out; echo err >&2; exit 3", NULL},
                                 NULL, 10, &r, &e),
                     0);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 3);
    assert_string_equal(r.out, "out\n");
    assert_string_equal(r.err, "err\n");
    dt_proc_result_free(&r);
    assert_int_equal(dt_proc_run((char *[]){"sh", "-c", "echo $X", NULL},
                                 (char *[]){"X=1", "PATH=/bin:/usr/bin", NULL}, 0, &r, &e),
                     0);
    assert_string_equal(r.out, "1\n");
    dt_proc_result_free(&r);
}

/* Where this is set it is a slow machine: a program has ended before anybody looks, and each look at the clock comes a
 * second after the last. */
static bool slow;
static time_t behind;

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    return __real_waitpid(pid, status, slow ? options & ~WNOHANG : options);
}

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = __real_clock_gettime(id, t);
    t->tv_sec += slow ? ++behind : 0;
    return rc;
}

static void what_a_program_said_is_heard_however_late(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r;
    (void)state;
    slow = true;
    int rc = dt_proc_run((char *[]){"sh", "-c", "printf %9000d 77; echo why >&2", NULL}, NULL, 0, &r, &e);
    slow = false;
    assert_int_equal(rc, 0);
    assert_int_equal(strlen(r.out), 9000);
    assert_string_equal(r.out + 8998, "77");
    assert_string_equal(r.err, "why\n");
    dt_proc_result_free(&r);
}

/* As a site's wrapper of sbatch may, which leaves something behind, and programs that become
 * daemons. */
static void only_the_program_itself_is_waited_for(void **state)
{
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    double begun = dt_monotonic();
    (void)state;
    assert_int_equal(dt_proc_run((char *[]){"sh", "-c", "sleep 30 & echo 77; exit 4", NULL}, NULL,
                                 20, &r, &e),
                     0);
    assert_string_equal(r.out, "77\n");
    assert_int_equal(WEXITSTATUS(r.status), 4);
    dt_proc_result_free(&r);
    assert_int_equal(dt_proc_run((char *[]){"sh", "-c", "exec >&- 2>&- sleep 30", NULL}, NULL, 0.2,
                                 &r, &e),
                     -1);
    dt_error_clear(&e);
    signal(SIGCHLD, SIG_IGN); /* as it may be inherited: then nobody is told of an end */
    assert_int_equal(dt_proc_run((char *[]){"echo", "5", NULL}, NULL, 20, &r, &e), 0);
    signal(SIGCHLD, SIG_DFL);
    assert_string_equal(r.out, "5\n");
    dt_proc_result_free(&r);
    assert_true(dt_monotonic() - begun < 15);
}

static void slow_programs_are_killed_and_absent_ones_named(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r;
    double start = dt_monotonic();
    (void)state;
    assert_int_equal(dt_proc_run((char *[]){"sleep", "60", NULL}, NULL, 0.2, &r, &e), -1);
    assert_true(dt_monotonic() - start < 20);
    assert_string_equal(e.text, "sleep did not end within 0 s and was killed");
    assert_int_equal(dt_proc_run((char *[]){"/no/such/program", NULL}, NULL, 1, &r, &e), -1);
    assert_string_equal(e.text, "cannot start /no/such/program: No such file or directory");
    dt_error_clear(&e);
}

static void long_output_is_cut_and_signals_are_blocked(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r;
    (void)state;
    assert_int_equal(
        dt_proc_run((char *[]){"head", "-c", "3000000", "/dev/zero", NULL}, NULL, 30, &r, &e), 0);
    assert_int_equal(r.status, 0);
    dt_proc_result_free(&r);
    assert_int_equal(
        dt_proc_run((char *[]){"sh", "-c", "yes | head -c 3000000", NULL}, NULL, 30, &r, &e), 0);
    assert_int_equal(strlen(r.out), 1024 * 1024);
    dt_proc_result_free(&r);
    /* a TERM sent to the child must not end it */
    assert_int_equal(
        dt_proc_run((char *[]){"sh", "-c", "kill -TERM $$; echo alive", NULL}, NULL, 10, &r, &e),
        0);
    assert_string_equal(r.out, "alive\n");
    dt_proc_result_free(&r);
}

static void nested_submissions_do_not_see_the_job(void **state)
{
    struct dt_strv env = DT_STRV_INIT;
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_CONF", "/etc/slurm.conf", 1);
    setenv("SBATCH_PARTITION", "p", 1);
    setenv("PMI_RANK", "0", 1);
    setenv("DT_TUNE_STUDY", "{}", 1);
    setenv("DT_PARAM_lr", "1", 1);
    setenv("DT_MY_OWN", "1", 1);
    dt_scrubbed_environ(&env);
    char *all = dt_strv_join(&env, "\n");
    assert_null(strstr(all, "SLURM_JOB_ID"));
    assert_null(strstr(all, "SBATCH_PARTITION"));
    assert_null(strstr(all, "PMI_RANK"));
    assert_null(strstr(all, "DT_TUNE_STUDY"));
    assert_null(strstr(all, "DT_PARAM_lr"));
    assert_non_null(strstr(all, "SLURM_CONF=/etc/slurm.conf"));
    assert_non_null(strstr(all, "DT_MY_OWN=1"));
    free(all);
    dt_strv_free(&env);
}

static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    folder = dt_xasprintf("%s/dt-test-util.XXXXXX", tmp ? tmp : P_tmpdir);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    struct dt_proc_result r;
    (void)state;
    int rc = dt_proc_run((char *[]){"rm", "-rf", folder, NULL}, NULL, 0, &r, NULL);
    dt_proc_result_free(&r);
    free(folder);
    return rc;
}

/* As when a package is upgraded while a study runs. */
static void an_executable_keeps_its_path_when_it_is_replaced(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_proc_result r;
    char *copy = dt_xasprintf("%s/copy", folder), *self = dt_self_exe(&e);
    (void)state;
    assert_int_equal(dt_proc_run((char *[]){"cp", self, copy, NULL}, NULL, 0, &r, &e), 0);
    dt_proc_result_free(&r);
    assert_int_equal(dt_proc_run((char *[]){copy, REPLACED, NULL}, NULL, 10, &r, &e), 0);
    assert_string_equal(r.out, copy);
    dt_proc_result_free(&r);
    free(copy);
    free(self);
}

static int replaced(const char *self)
{
    struct dt_error e = DT_ERROR_INIT;
    if (unlink(self) < 0)
        return 1;
    char *path = dt_self_exe(&e);
    fputs(path ? path : e.text, stdout);
    free(path);
    dt_error_clear(&e);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], REPLACED) == 0)
        return replaced(argv[0]);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_one_line_with_their_place),
        cmocka_unit_test(buffers_and_lists_grow),
        cmocka_unit_test(doubles_are_read_whole_or_not_at_all),
        cmocka_unit_test(integers_are_read_whole_or_not_at_all),
        cmocka_unit_test(memory_is_mebibytes_rounded_up),
        cmocka_unit_test(time_is_as_slurm_writes_it),
        cmocka_unit_test(doubles_are_written_short_and_read_back),
        cmocka_unit_test(durations_are_written_for_people),
        cmocka_unit_test(the_nearest_word_is_one_that_may_be_meant),
        cmocka_unit_test(json_is_strict),
        cmocka_unit_test(json_text_comes_back_as_it_was),
        cmocka_unit_test(json_lines_are_found_by_path),
        cmocka_unit_test(json_values_have_defaults),
        cmocka_unit_test(json_numbers_are_exact),
        cmocka_unit_test(tables_have_columns_and_cells),
        cmocka_unit_test(broken_tables_are_refused),
        cmocka_unit_test(files_are_written_whole_and_read_back),
        cmocka_unit_test(programs_run_to_their_end),
        cmocka_unit_test(what_a_program_said_is_heard_however_late),
        cmocka_unit_test(only_the_program_itself_is_waited_for),
        cmocka_unit_test(slow_programs_are_killed_and_absent_ones_named),
        cmocka_unit_test(long_output_is_cut_and_signals_are_blocked),
        cmocka_unit_test(an_executable_keeps_its_path_when_it_is_replaced),
        cmocka_unit_test(nested_submissions_do_not_see_the_job),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
