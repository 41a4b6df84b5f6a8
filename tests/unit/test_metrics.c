/* How a trial's metrics come to the tuner: text patterns, the process that looks for them, the
 * reader of the metrics file, and the course of a metric. */
#include "backend/slurm_private.h"
#include "launch/launch.h"
#include "util/pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* ---- patterns ---- */

static void wrong_patterns_are_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"accuracy=([0-9.]+",
         "\"accuracy=([0-9.]+\" is no POSIX extended regular expression: Unmatched ( "
         "or \\(; write it like accuracy=([0-9.]+)"},
        {"accuracy=[0-9.]+",
         "\"accuracy=[0-9.]+\": one group is needed, the parentheses around the number, "
         "this has 0; write it like accuracy=([0-9.]+)"},
        {"(acc|accuracy)=([0-9.]+)",
         "\"(acc|accuracy)=([0-9.]+)\": one group is needed, the parentheses around "
         "the number, this has 2; write it like accuracy=([0-9.]+)"},
        {"acc=(\\d+)", "\"acc=(\\d+)\": \\d has no meaning of its own there in a POSIX regular "
                       "expression; write 0-9 in brackets"},
        {"acc=([\\d.]+)",
         "\"acc=([\\d.]+)\": \\d has no meaning of its own there in a POSIX regular "
         "expression; write 0-9 in brackets"},
        {"a.*?=([0-9]+)",
         "\"a.*?=([0-9]+)\": POSIX has no lazy repetition (*?); exclude what must not "
         "be matched, as in [^,]*"},
        {"([0-9])\\1", "\"([0-9])\\1\": a back-reference (\\1) cannot be used; write it out"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        regex_t re;
        assert_int_equal(dt_pattern_compile(cases[i].text, &re, &e), -1);
        assert_string_equal(e.text, cases[i].error);
        dt_error_clear(&e);
    }
}

static void a_match_is_a_number_in_one_of_two_forms(void **state)
{
#define USUAL "accuracy[=: ]+([-+0-9.eE]+)"
    static const struct {
        const char *pattern, *line;
        enum dt_pattern_form form;
        double value;
    } cases[] = {
        {USUAL, "loss=1", DT_PATTERN_NONE, 0},
        {USUAL, "epoch 3: accuracy=0.93, loss=1", DT_PATTERN_PLAIN, 0.93},
        {USUAL, "the accuracy: -1.5e-3.", DT_PATTERN_PLAIN, -1.5e-3},
        {USUAL, "accuracy 93%", DT_PATTERN_PERCENT, 93},
        {USUAL, "accuracy 93 % of all", DT_PATTERN_PERCENT, 93},
        {USUAL, "accuracy: evaluated", DT_PATTERN_ODD, 0},
        {USUAL, "accuracy: nan", DT_PATTERN_NONE, 0},
        {"loss=([-+0-9.eE]+|nan|inf)", "loss=nan", DT_PATTERN_PLAIN, NAN},
        {"loss=([-+0-9.eE]+|nan|inf)", "loss=inf", DT_PATTERN_PLAIN, NAN},
        {"a=([0-9]+)?;", "a=;", DT_PATTERN_ODD, 0},
        {"^[[:blank:]]*a\\[\\.\\]?=([^;]*)$", "\t a[.=7 apples", DT_PATTERN_PLAIN, 7},
        {"\\<a=([][+*?0-9]+)", "b a=12", DT_PATTERN_PLAIN, 12},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        regex_t re;
        double value = 0;
        size_t from, to;
        if (dt_pattern_compile(cases[i].pattern, &re, &e) < 0)
            fail_msg("%s", e.text);
        enum dt_pattern_form form =
            dt_pattern_match(&re, cases[i].line, strlen(cases[i].line), &value, &from, &to);
        if (form != cases[i].form || !same(value, cases[i].value))
            fail_msg("%s on %s: form %d, value %g", cases[i].pattern, cases[i].line, form, value);
        regfree(&re);
    }
    regex_t re;
    double value;
    size_t from, to;
    assert_int_equal(dt_pattern_compile("a=([0-9]+)", &re, NULL), 0);
    assert_int_equal(dt_pattern_match(&re, "\0x\0a=5\0", 7, &value, &from, &to), DT_PATTERN_PLAIN);
    assert_int_equal(dt_pattern_match(&re, "xx a=\0005", 5, &value, &from, &to), DT_PATTERN_NONE);
    regfree(&re);
}

/* ---- SPEC ---- */

static struct dt_spec *parse(const char *metrics, struct dt_error *e)
{
    char *text = dt_xasprintf("{\n\"metrics\": {\n%s}}", metrics);
    struct json_object *json = dt_json_parse(text, "S.json", e);
    struct dt_spec *spec = json ? dt_spec_parse(json, text, "S.json", e) : NULL;
    json_object_put(json);
    free(text);
    return spec;
}

static void spec_names_patterns_and_step(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_spec *s =
        parse("\"patterns\": {\"a\": \"a=([0-9]+)\", \"b c\": \"b=(.*)\"}, \"step\": \"iter\"", &e);
    (void)state;
    if (!s)
        fail_msg("%s", e.text);
    assert_string_equal(s->step, "iter");
    assert_int_equal(s->patterns.n, 2);
    assert_string_equal(dt_spec_pattern(s, "a"), "a=([0-9]+)");
    assert_string_equal(dt_spec_pattern(s, "b c"), "b=(.*)");
    assert_null(dt_spec_pattern(s, "c"));
    dt_spec_free(s);
    s = parse("", &e);
    assert_true(s && !s->step && s->patterns.n == 0);
    dt_spec_free(s);
}

static void mistakes_in_spec_have_place_and_cure(void **state)
{
#define NO_METRIC "no metric can have this name; choose another"
    static const struct {
        const char *metrics, *error;
    } cases[] = {
        {"\"pattern\": {}", "S.json:3: metrics.pattern: unknown key; did you mean \"patterns\"?"},
        {"\"patterns\": [\"a\"]",
         "S.json:3: metrics.patterns: an object is needed here, this is an array"},
        {"\"patterns\": {\"a\": 1}",
         "S.json:3: metrics.patterns.a: a string is needed here, this is a number"},
        {"\"patterns\": {\"a\": null}",
         "S.json:3: metrics.patterns.a: a string is needed here, this is null"},
        {"\"patterns\": {\n\"a\": \"(x\"}",
         "S.json:4: metrics.patterns.a: \"(x\" is no POSIX extended "
         "regular expression: Unmatched ( or \\(; write it like "
         "accuracy=([0-9.]+)"},
        {"\"patterns\": {\"a\": \"\"}",
         "S.json:3: metrics.patterns.a: \"\": one group is needed, the parentheses around the "
         "number, this has 0; write it like accuracy=([0-9.]+)"},
        {"\"patterns\": {\"a\": \"a=(.)\\n\"}",
         "S.json:3: metrics.patterns.a: a pattern is looked for in "
         "each line alone; take the line end out of it"},
        {"\"patterns\": {\"\": \"a=(.)\"}", "S.json:3: metrics.patterns.: " NO_METRIC},
        {"\"patterns\": {\"time\": \"a=(.)\"}", "S.json:3: metrics.patterns.time: " NO_METRIC},
        {"\"step\": 5", "S.json:3: metrics.step: a string is needed here, this is a number"},
        {"\"step\": \"\"", "S.json:3: metrics.step: an empty value; write one or leave it out"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        assert_null(parse(cases[i].metrics, &e));
        assert_string_equal(e.text, cases[i].error);
        dt_error_clear(&e);
    }
    struct dt_buf b = DT_BUF_INIT;
    struct dt_error e = DT_ERROR_INIT;
    for (int i = 0; i < 65; i++)
        dt_buf_addf(&b, "%s\"m%d\": \"a=(.)\"", i ? ", " : "\"patterns\": {", i);
    dt_buf_add(&b, "}");
    assert_null(parse(b.s, &e));
    assert_string_equal(
        e.text, "S.json:3: metrics.patterns: 65 patterns, at most 64 are possible; leave some out");
    dt_error_clear(&e);
    dt_buf_free(&b);
}

/* ---- a folder ---- */

static char *folder;

static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    folder = dt_xasprintf("%s/dt-test-metrics.XXXXXX", tmp ? tmp : P_tmpdir);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"metrics.jsonl", "output.log",   "launch-1.json",
                                        "launch-2.json", "worker-0.log", "worker-1.log"};
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char *path = dt_xasprintf("%s/%s", folder, names[i]);
        unlink(path);
        free(path);
    }
    int rc = rmdir(folder);
    free(folder);
    return rc;
}

/* Appends to a file of the folder. */
static void put(const char *name, const char *text, size_t n)
{
    char *path = dt_xasprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void puts_(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* The same line n times over. */
static void put_flood(const char *name, const char *line, size_t n)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < n; i++)
        dt_buf_add(&b, line);
    put(name, b.s, b.len);
    dt_buf_free(&b);
}

/* ---- the process that looks for patterns ---- */

static struct dt_watcher watcher;

static void begin(const char *metrics)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{\"metrics\": {%s}}", metrics);
    struct json_object *plan = dt_json_parse(text, "plan", &e);
    assert_non_null(plan);
    if (dt_patterns_start(plan, folder, &watcher, &e) < 0)
        fail_msg("%s", e.text);
    json_object_put(plan);
    free(text);
}

/* What was found, without times: {"a":1}{"a":2}. Caller frees. */
static char *found(void)
{
    struct dt_buf b = DT_BUF_INIT;
    struct dt_strv lines = DT_STRV_INIT;
    char *path = dt_xasprintf("%s/metrics.jsonl", folder);
    char *text = dt_read_file(path, (size_t)1 << 28, NULL, NULL);
    dt_strv_split(&lines, text ? text : "", "\n");
    for (size_t i = 0; i < lines.n; i++) {
        struct json_object *o = dt_json_parse(lines.v[i], "line", NULL);
        assert_non_null(o);
        assert_string_equal(dt_json_str(o, "dt", ""), "pattern");
        assert_true(fabs(dt_json_num(o, "time", 0) - dt_now()) < 60);
        json_object_object_del(o, "dt");
        json_object_object_del(o, "time");
        char *line = dt_json_text(o);
        dt_buf_add(&b, line);
        free(line);
        json_object_put(o);
    }
    dt_strv_free(&lines);
    free(text);
    free(path);
    return dt_buf_take(&b);
}

static void end(const char *expected, const char *notes)
{
    struct json_object *o = dt_patterns_stop(&watcher);
    char *text = dt_json_text(o), *values = found();
    assert_string_equal(text, notes);
    assert_string_equal(values, expected);
    free(text);
    free(values);
    json_object_put(o);
}

#define A "\"patterns\": {\"a\": \"a=([-+0-9.eEnaif]+)\"}"

static void output_is_searched_line_by_line_to_its_end(void **state)
{
    (void)state;
    puts_("output.log", "a=1\nof an earlier run\n");
    begin("\"patterns\": {\"a\": \"a=([-+0-9.eEnaif]+)\", \"epoch\": \"epoch ([0-9]+)\"}");
    puts_("output.log", "a=2\n\nepoch 1 a=3\nno\rbar a=4\rbar a=5\r\nx\n");
    put("output.log", "\0\xff\x80 a=6\0\n", 9);
    puts_("output.log", "a=nan\na=+\nepoch 2\nthe end: a=7.5");
    end("{\"a\":2}{\"a\":3,\"epoch\":1}{\"a\":4}{\"a\":5}{\"a\":6}{\"a\":NaN}{\"epoch\":2}{\"a\":7."
        "5}",
        "[\"the pattern of a also matched \\\"+\\\", which is no number\"]");
}

static void without_patterns_there_is_no_process(void **state)
{
    struct json_object *plan = json_object_new_object();
    (void)state;
    assert_int_equal(dt_patterns_start(plan, folder, &watcher, NULL), 0);
    assert_int_equal(watcher.pid, 0);
    assert_null(dt_patterns_stop(&watcher));
    json_object_put(plan);
}

static void the_first_form_of_a_number_counts(void **state)
{
    (void)state;
    begin(A);
    puts_("output.log", "a=0.5\na=60%\na=0.7\n");
    end("{\"a\":0.5}{\"a\":0.7}",
        "[\"a is printed both with and without a per cent sign; only those without it "
        "count, like the first; let its pattern match one form\"]");
}

static void output_of_tasks_that_goes_its_own_ways_is_searched_in_their_logs(void **state)
{
    (void)state;
    puts_("worker-0.log", "a=1\n");
    begin(A);
    puts_("launch-1.json", "{\"number\": 1}"); /* this one's comes to output.log */
    puts_("launch-2.json", "{\"number\": 2, \"logs\": {\"worker\": [4]}}");
    puts_("worker-0.log", "a=2\na=3\n");
    puts_("output.log", "a=4\n");
    end("{\"a\":2}{\"a\":3}{\"a\":4}", "[]");
}

/* What happens just before the job's own output is read, in the process that looks for patterns;
 * and whether the second worker's log takes longer than one look. */
static void (*before_output)(void);
static bool slow_log;

int __real_dt_open_regular(const char *path);
int __wrap_dt_open_regular(const char *path)
{
    void (*act)(void) = strstr(path, "/output.log") ? before_output : NULL;
    before_output = act ? NULL : before_output;
    if (act)
        act();
    if (slow_log && strstr(path, "/worker-1.log")) {
        slow_log = false;
        usleep(300000);
    }
    return __real_dt_open_regular(path);
}

static void print_more(void)
{
    puts_("worker-0.log", "a=2\n");
    puts_("output.log", "the best was a=3\n");
}

static void print_and_then_more(void)
{
    puts_("output.log", "so far a=1.5\n");
    before_output = print_more;
}

/* A task has printed a=1, and the first look is on the way when `act` happens. */
static void begin_before(void (*act)(void))
{
    puts_("launch-1.json", "{\"number\": 1, \"logs\": {\"worker\": [0]}}");
    puts_("worker-0.log", "a=1\n");
    puts_("output.log", "");
    before_output = act;
    begin(A);
    before_output = NULL;
}

static void the_job_has_the_last_word(void **state)
{
    (void)state;
    begin_before(print_more);
    end("{\"a\":1}{\"a\":2}{\"a\":3}", "[]");
}

static void wait_until_found(const char *value)
{
    char *values = found();
    for (int i = 0; i < 6000 && !strstr(values, value); i++) {
        usleep(10000);
        free(values);
        values = found();
    }
    free(values);
}

/* Also where there was something to be read of it when the look began. */
static void the_job_has_the_last_word_each_time(void **state)
{
    (void)state;
    begin_before(print_and_then_more);
    wait_until_found("{\"a\":3}");
    end("{\"a\":1}{\"a\":1.5}{\"a\":2}{\"a\":3}", "[]");
}

static void the_job_has_the_last_word_after_a_flood(void **state)
{
    (void)state;
    puts_("launch-1.json", "{\"number\": 1, \"logs\": {\"worker\": [0, 0]}}");
    puts_("worker-0.log", "");
    put_flood("worker-1.log", "nothing\n", 20000);
    puts_("worker-1.log", "a=1\n");
    slow_log = true;
    begin(A);
    slow_log = false;
    wait_until_found("{\"a\":1}");
    print_more();
    wait_until_found("{\"a\":3}");
    end("{\"a\":1}{\"a\":2}{\"a\":3}", "[]");
}

/* On a machine that has no time for it, as it has a low priority. */
static void what_was_printed_last_is_found_however_late(void **state)
{
    (void)state;
    begin(A);
    kill(watcher.pid, SIGSTOP);
    puts_("output.log", "a=1\n");
    pid_t helper = fork();
    if (helper == 0) {
        sleep(3);
        _exit(kill(watcher.pid, SIGCONT) < 0);
    }
    end("{\"a\":1}", "[]");
    assert_int_equal(waitpid(helper, NULL, 0), helper);
}

static void long_lines_of_output_are_passed_over(void **state)
{
    char *line = dt_xcalloc(300001, 1);
    (void)state;
    memset(line, 'a', 300000);
    begin(A);
    puts_("output.log", "a=1\n");
    puts_("output.log", line);
    puts_("output.log", " a=2\na=3\n");
    end("{\"a\":1}{\"a\":3}",
        "[\"lines of output longer than 64 KiB were not searched for metrics\"]");
    free(line);
}

/* Number of metric lines. */
static size_t lines_found(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '{')); text++)
        n++;
    return n;
}

static void a_flood_of_output_is_thinned_but_for_target_and_end(void **state)
{
    (void)state;
    begin(A ", \"target\": {\"metric\": \"a\", \"at_least\": 0.9}");
    put_flood("output.log", "a=0.1\n", 10000);
    puts_("output.log", "a=0.95\na=0.96\n");
    put_flood("output.log", "a=0.2\n", 10000);
    puts_("output.log", "a=0.3\n");
    struct json_object *o = dt_patterns_stop(&watcher);
    char *values = found();
    assert_int_equal(dt_json_count(o), 0);
    assert_true(lines_found(values) < 200);
    assert_non_null(strstr(values, "{\"a\":0.1}{\"a\":0.95}{\"a\":"));
    assert_string_equal(values + strlen(values) - 9, "{\"a\":0.3}");
    free(values);
    json_object_put(o);
}

static void more_output_than_can_be_searched_is_skipped_and_said(void **state)
{
    char *line = dt_xcalloc(1001, 1);
    (void)state;
    memset(line, 'x', 999);
    line[999] = '\n';
    begin(A);
    for (int i = 0; i < 20; i++)
        put_flood("output.log", line, 4000);
    puts_("output.log", "a=5");
    end("{\"a\":5}",
        "[\"the output came faster than it can be searched for metrics, and some was passed "
        "over; print less, or report by dt-tune metric\"]");
    free(line);
}

/* ---- the reader of the metrics file ---- */

struct reading {
    struct dt_spec *spec;
    struct dt_trial t;
    struct dt_feed *f;
    struct dt_event *events;
    size_t n;
};

static struct reading reading(const char *sections)
{
    struct reading r = {.t = {.id = 3, .run = 1, .job = 9, .t_target = NAN, .t_started = NAN}};
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{%s}", sections), *path = dt_xasprintf("%s/metrics.jsonl", folder);
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    r.spec = json ? dt_spec_parse(json, text, "S.json", &e) : NULL;
    if (!r.spec)
        fail_msg("%s", e.text);
    r.f = dt_feed_new(path, &r.t);
    json_object_put(json);
    free(text);
    free(path);
    return r;
}

static void forget_events(struct reading *r)
{
    for (size_t i = 0; i < r->n; i++)
        dt_event_free(&r->events[i]);
    free(r->events);
    r->events = NULL;
    r->n = 0;
}

/* A look gives these events: "name=value@step#count ...". */
static void gives(struct reading *r, bool to_end, const char *expected)
{
    struct dt_buf b = DT_BUF_INIT;
    forget_events(r);
    dt_feed_read(r->f, r->spec, &r->t, to_end, &r->events, &r->n);
    for (size_t i = 0; i < r->n; i++) {
        const struct dt_event *ev = &r->events[i];
        assert_true(ev->kind == DT_EVENT_METRIC && ev->trial == 3 && ev->run == 1 && ev->job == 9);
        assert_int_equal(ev->read != 0, i + 1 == r->n);
        dt_buf_addf(&b, "%s%s=%g@%g#%d", i ? " " : "", ev->text, ev->value, ev->step,
                    (int)ev->count);
    }
    assert_string_equal(b.s ? b.s : "", expected);
    dt_buf_free(&b);
}

static void says(struct reading *r, const char *expected)
{
    char *note = dt_feed_note(r->f);
    assert_string_equal(note ? note : "", expected);
    free(note);
}

static void over(struct reading *r)
{
    forget_events(r);
    dt_feed_free(r->f);
    dt_spec_free(r->spec);
}

#define FILE_ "metrics.jsonl"

static void each_look_gives_the_latest_value_of_each_metric(void **state)
{
    struct reading r = reading("");
    (void)state;
    gives(&r, false, "");
    puts_(FILE_,
          "{\"loss\": 3, \"step\": 10, \"time\": 5.5}\n{\"loss\": 2, \"step\": 20, \"epoch\": 1}\n"
          "{\"acc\": 0.5}\n{\"acc\": 0.6, \"phase\": \"test\", \"ok\": true}\n\n{\"loss\": ");
    /* the first value too, where there are more at once: a speed is counted from it */
    gives(&r, false, "loss=3@10#1 loss=2@1#2 step=10@10#1 step=20@1#2 epoch=1@1#1 acc=0.5@nan#1 "
                     "acc=0.6@nan#2");
    assert_true(r.events[0].t == 5.5 && r.events[2].t == 5.5);
    gives(&r, false, "");
    puts_(FILE_, "1.5}\n");
    gives(&r, false, "loss=1.5@nan#3");
    puts_(FILE_, "{\"loss\": NaN}\n{\"acc\": Infinity}\n");
    gives(&r, false, "loss=nan@nan#4 acc=inf@nan#3");
    puts_(FILE_, "{\"loss\": 0.5, \"epoch\": 2}");
    gives(&r, false, "");
    gives(&r, true, "loss=0.5@2#5 epoch=2@2#2"); /* nobody will end this line any more */
    gives(&r, true, "");
    says(&r, "");
    over(&r);
}

static void the_step_is_what_spec_says_and_patterns_have_the_last_one(void **state)
{
    struct reading r = reading("\"metrics\": {\"step\": \"iter\"}");
    (void)state;
    puts_(FILE_, "{\"a\": 1, \"iter\": 7, \"epoch\": 1}\n{\"b\": 1, \"epoch\": 2}\n"
                 "{\"c\": 1, \"dt\": \"pattern\"}\n");
    gives(&r, false, "a=1@7#1 iter=7@7#1 epoch=1@7#1 epoch=2@nan#2 b=1@nan#1 c=1@7#1");
    over(&r);
    r = reading("");
    gives(&r, false, "a=1@1#1 iter=7@1#1 epoch=1@1#1 epoch=2@2#2 b=1@2#1 c=1@2#1");
    over(&r);
}

static void the_first_value_that_reaches_the_target_is_not_missed(void **state)
{
    struct reading r = reading("\"target\": {\"metric\": \"loss\", \"at_most\": 1}");
    (void)state;
    r.t.t_started = dt_now() - 3000; /* so that values wait, for 30 s */
    puts_(FILE_, "{\"loss\": 3}\n");
    gives(&r, false, "loss=3@nan#1");
    puts_(FILE_, "{\"loss\": 2}\n");
    gives(&r, false, "");
    puts_(FILE_, "{\"loss\": 0.9, \"time\": 17, \"step\": 4}\n{\"loss\": 5, \"step\": 5}\n");
    gives(&r, false, "loss=0.9@4#3 step=4@4#1 step=5@5#2");
    assert_true(r.events[0].t == 17);
    r.t.t_target = 17;
    puts_(FILE_, "{\"loss\": 0.5}\n{\"loss\": 0.8}\n");
    gives(&r, false, "");
    gives(&r, true, "loss=0.8@nan#5");
    over(&r);
}

static void a_time_that_cannot_be_is_that_of_the_reading(void **state)
{
    static const char *const times[] = {"12.3", "1732900000123", "NaN", "-Infinity", "1e999"};
    struct reading r = reading("");
    (void)state;
    r.t.t_created = dt_now() - 10;
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        char *line = dt_xasprintf("{\"loss\": 3, \"time\": %s}\n", times[i]);
        puts_(FILE_, line);
        forget_events(&r);
        dt_feed_read(r.f, r.spec, &r.t, true, &r.events, &r.n);
        assert_true(r.n == 1 && fabs(r.events[0].t - dt_now()) < 60);
        free(line);
    }
    char *line = dt_xasprintf("{\"loss\": 3, \"time\": %.1f}\n", r.t.t_created - 3600);
    puts_(FILE_, line);
    forget_events(&r);
    dt_feed_read(r.f, r.spec, &r.t, true, &r.events, &r.n);
    assert_true(r.n == 1 && fabs(r.events[0].t - (r.t.t_created - 3600)) < 0.1);
    free(line);
    over(&r);
}

static void a_restarted_tuner_goes_on_where_the_journal_ends(void **state)
{
    struct reading r = reading("");
    (void)state;
    puts_(FILE_, "{\"a\": 1, \"epoch\": 4}\n");
    gives(&r, false, "a=1@4#1 epoch=4@4#1");
    struct dt_metric metrics[] = {{.name = (char *)"epoch", .last = 4, .count = 1, .read = 1},
                                  {.name = (char *)"a", .last = 1, .count = 1, .read = 1}};
    r.t.metrics = metrics;
    r.t.nmetrics = 2;
    r.t.metrics_read = r.events[1].read;
    dt_feed_free(r.f);
    char *path = dt_xasprintf("%s/metrics.jsonl", folder);
    r.f = dt_feed_new(path, &r.t);
    free(path);
    puts_(FILE_, "{\"a\": 2, \"dt\": \"pattern\"}\n");
    gives(&r, false, "a=2@4#2");
    over(&r);
}

static void what_cannot_be_read_is_said(void **state)
{
    struct reading r = reading("\"objective\": {\"metric\": \"acc\", \"goal\": \"maximize\"}");
    (void)state;
    put(FILE_, "\x7f\x45LF\0\xff\n", 7);
    puts_(FILE_, "{\"acc\": nan}\n[1]\n{\"acc\": \"93%\", \"phase\": \"x\"}\n{\"a\\u0007\": "
                 "1}\n{\"loss\": 1}\n"
                 "{\"loss\": 2, ");
    gives(&r, true, "loss=1@nan#1");
    says(&r, "metrics whose name is not plain text of at most 200 bytes were passed over: a?\n"
             "metrics.jsonl has lines that are no JSON object, such as: ?ELF??\n"
             "the last line of metrics.jsonl is not complete: {\"loss\": 2, \n"
             "acc was reported as \"93%\", which is no number; write it as one, without quotes or "
             "signs");
    over(&r);
}

static void two_sources_that_differ_are_named(void **state)
{
    struct reading r = reading("");
    (void)state;
    puts_(FILE_, "{\"acc\": 0.931}\n{\"acc\": 0.93, \"dt\": \"pattern\"}\n");
    gives(&r, false, "acc=0.931@nan#1 acc=0.93@nan#2");
    says(&r, "");
    puts_(FILE_, "{\"acc\": 94, \"dt\": \"pattern\"}\n{\"acc\": 0.94}\n");
    gives(&r, true, "acc=0.94@nan#4");
    says(&r, "acc comes from two places that differ: at last 0.94 by metrics.jsonl, 94 by its "
             "pattern; both "
             "count, so take one out");
    over(&r);
}

static void only_so_many_metrics_count(void **state)
{
    struct reading r = reading("");
    struct dt_buf b = DT_BUF_INIT;
    (void)state;
    for (int i = 0; i < 1000; i++)
        dt_buf_addf(&b, "{\"m%d\": %d}\n", i, i);
    put(FILE_, b.s, b.len);
    dt_buf_free(&b);
    dt_feed_read(r.f, r.spec, &r.t, true, &r.events, &r.n);
    assert_int_equal(r.n, 64);
    says(&r, "only the first 64 metrics count; \"m64\" and others were passed over");
    over(&r);
}

static void long_lines_of_the_file_are_passed_over(void **state)
{
    struct reading r = reading("");
    char *blanks = dt_xcalloc(100001, 1);
    (void)state;
    memset(blanks, ' ', 100000);
    puts_(FILE_, "{\"a\": 1}\n{\"a\": 2");
    puts_(FILE_, blanks);
    gives(&r, false, "a=1@nan#1");
    puts_(FILE_, blanks);
    gives(&r, false, "");
    puts_(FILE_, "}\n{\"a\": 3}\n");
    gives(&r, false, "a=3@nan#2");
    says(&r, "lines of metrics.jsonl longer than 64 KiB were passed over");
    free(blanks);
    over(&r);
}

static void a_flood_costs_a_bounded_time_and_its_end_counts(void **state)
{
    struct reading r = reading("");
    (void)state;
    puts_(FILE_, "{\"rare\": 1}\n");
    put_flood(FILE_, "{\"a\": 1}\n", 500000); /* 4.5 MB: read in turns */
    for (int i = 0; i < 9; i++) {
        forget_events(&r);
        dt_feed_read(r.f, r.spec, &r.t, false, &r.events, &r.n);
    }
    assert_int_equal(r.n, 1);
    assert_int_equal(r.events[0].count, 500000);
    put_flood(FILE_, "{\"a\": 2}\n", 3000000); /* 27 MB: but for its end skipped */
    double begun = dt_monotonic();
    forget_events(&r);
    dt_feed_read(r.f, r.spec, &r.t, false, &r.events, &r.n);
    print_message("# one look at a flood: %.1f ms\n", 1000 * (dt_monotonic() - begun));
    assert_int_equal(r.n, 1);
    assert_true(r.events[0].value == 2 && r.events[0].count < 600000);
    says(&r, "metrics were reported faster than they could be read, and some were passed over; "
             "report less "
             "often");
    put_flood(FILE_, "{\"a\": 3}\n", 1000000);
    puts_(FILE_, "{\"last\": 4}\n");
    put_flood(FILE_, "{\"a\": 5}\n", 400000);
    begun = dt_monotonic();
    forget_events(&r);
    dt_feed_read(r.f, r.spec, &r.t, true, &r.events, &r.n);
    print_message("# the last look at a flood: %.1f ms\n", 1000 * (dt_monotonic() - begun));
    assert_int_equal(r.n, 2);
    assert_true(r.events[0].value == 5 && r.events[1].value == 4);
    over(&r);
}

static void a_file_that_is_written_anew_is_read_anew(void **state)
{
    struct reading r = reading("");
    char *path = dt_xasprintf("%s/metrics.jsonl", folder);
    (void)state;
    puts_(FILE_, "{\"a\": 1}\n{\"a\": 2}\n");
    gives(&r, false, "a=1@nan#1 a=2@nan#2");
    assert_int_equal(truncate(path, 0), 0);
    puts_(FILE_, "{\"a\": 3}\n");
    gives(&r, false, "a=3@nan#3");
    free(path);
    over(&r);
}

/* Nobody waits for them, nor for what never ends. */
static void what_is_no_file_has_no_metrics(void **state)
{
    char *path = dt_xasprintf("%s/metrics.jsonl", folder), *output = dt_xasprintf("%s/output.log", folder);
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct reading r = reading("");
        int rc = i == 0   ? mkfifo(path, 0600) | mkfifo(output, 0600)
                 : i == 1 ? symlink("/dev/zero", path) | symlink("/dev/zero", output)
                          : symlink(folder, path) | symlink(folder, output);
        assert_int_equal(rc, 0);
        gives(&r, true, "");
        assert_null(dt_records_last_lines(folder));
        over(&r);
        unlink(path);
        unlink(output);
    }
    puts_("launch-1.json", "{\"a\": 1}\n"); /* where a user puts it is the user's to choose */
    struct reading r = reading("");
    assert_int_equal(symlink("launch-1.json", path), 0);
    gives(&r, true, "a=1@nan#1");
    over(&r);
    free(path);
    free(output);
}

/* ---- the course of a metric ---- */

static void a_course_is_bounded_and_keeps_its_ends(void **state)
{
    struct dt_series s = {0};
    size_t most = 0;
    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        dt_series_add(&s, 10.0 * (double)i, -(double)i, 1000 + (double)i);
        most = s.n > most ? s.n : most;
        assert_true(s.v[0].step == 0 && s.v[s.n - 1].value == -(double)i);
        assert_true(s.n >= (i + 1 < 128 ? i + 1 : 128));
        for (size_t k = 0; k + 1 < s.n && (i < 1000 || i % 1000 == 0); k++)
            assert_true(s.v[k].step == 10.0 * (double)(k * s.stride) &&
                        s.v[k].t == 1000 + (double)(k * s.stride));
    }
    assert_int_equal(most, DT_SERIES_MAX);
    dt_series_free(&s);
    dt_series_add(&s, NAN, 1, 1);
    dt_series_add(&s, NAN, NAN, 2);
    assert_true(s.n == 2 && s.v[0].step == 1 && s.v[1].step == 2 && isnan(s.v[1].value));
    dt_series_free(&s);
}

static struct dt_study *study(struct dt_spec *spec, struct dt_space *space)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_study *s = dt_study_new(spec, space, NULL, &e);
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    if (!s)
        fail_msg("%s", e.text);
    ev.trial = 1;
    ev.config = dt_json_parse("{\"workers\": 1}", "c", NULL);
    assert_int_equal(dt_study_apply(s, &ev, &e), 0);
    dt_event_free(&ev);
    return s;
}

/* Applies an event as it is, and as the journal gives it back. */
static void apply_both(struct dt_study *s, struct dt_study *replayed, struct dt_event *ev)
{
    struct json_object *o = dt_event_to_json(ev);
    char *text = dt_json_text(o);
    json_object_put(o);
    o = dt_json_parse(text, "record", NULL);
    assert_int_equal(dt_study_apply(s, ev, NULL), 0);
    assert_int_equal(dt_study_apply_record(replayed, o, NULL), 0);
    json_object_put(o);
    free(text);
    dt_event_free(ev);
}

#define WORKERS "\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}"

static void a_replay_gives_the_same_course(void **state)
{
    struct reading r = reading(WORKERS);
    struct dt_space *space = dt_space_new(r.spec->params, r.spec->nparams, &r.spec->constraints,
                                          NULL, 0, NULL, NULL, NULL, 0, NULL);
    struct dt_study *a = study(r.spec, space), *b = study(r.spec, space);
    unsigned dice = 1;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        struct dt_event ev = DT_EVENT(DT_EVENT_METRIC);
        ev.trial = ev.run = 1;
        ev.text = dt_xstrdup(rand_r(&dice) % 3 ? "loss" : "acc");
        ev.t = i / 7.0;
        ev.value = rand_r(&dice) % 9 ? rand_r(&dice) / 1e9 : INFINITY;
        ev.step = rand_r(&dice) % 4 ? i / 3.0 : NAN;
        ev.count = rand_r(&dice) % 2 ? 2 * i + 1 : 0;
        ev.read = rand_r(&dice) % 2 ? 100 * i : 0;
        apply_both(a, b, &ev);
    }
    const struct dt_trial *t = dt_study_trial(a, 1), *u = dt_study_trial(b, 1);
    assert_true(t->nmetrics == 2 && u->nmetrics == 2 && t->metrics_read == u->metrics_read &&
                t->metrics_read > 0);
    for (size_t i = 0; i < 2; i++) {
        const struct dt_metric *m = &t->metrics[i], *n = &u->metrics[i];
        assert_true(m->series.n == n->series.n && m->series.n > 128 && m->count == n->count);
        for (size_t k = 0; k < m->series.n; k++) {
            const struct dt_point *p = &m->series.v[k], *q = &n->series.v[k];
            assert_true(same(p->step, q->step) && same(p->value, q->value) && p->t == q->t);
        }
    }
    dt_study_free(a);
    dt_study_free(b);
    dt_space_free(space);
    over(&r);
}

/* The tuner is killed between two events of one look: the rest of what it read is read again, and counts once. */
static void what_is_read_again_counts_once(void **state)
{
    struct reading r = reading(WORKERS);
    struct dt_space *space = dt_space_new(r.spec->params, r.spec->nparams, &r.spec->constraints,
                                          NULL, 0, NULL, NULL, NULL, 0, NULL);
    struct dt_study *s = study(r.spec, space);
    (void)state;
    puts_(FILE_, "{\"a\": 1, \"epoch\": 1}\n{\"a\": 2, \"epoch\": 2}\n");
    gives(&r, false, "a=1@1#1 a=2@2#2 epoch=1@1#1 epoch=2@2#2");
    r.events[0].trial = 1;
    assert_int_equal(dt_study_apply(s, &r.events[0], NULL), 0);
    dt_feed_free(r.f);
    char *path = dt_xasprintf("%s/metrics.jsonl", folder);
    r.f = dt_feed_new(path, dt_study_trial(s, 1));
    free(path);
    gives(&r, false, "a=2@2#2 epoch=1@1#1 epoch=2@2#2");
    dt_study_free(s);
    dt_space_free(space);
    over(&r);
}

/* What an ended trial tells that has reported `name`, if any, at last as `value`. */
static void ends_with(const char *sections, const char *name, double value, const char *expected)
{
    struct reading r = reading(sections);
    struct dt_space *space = dt_space_new(r.spec->params, r.spec->nparams, &r.spec->constraints,
                                          NULL, 0, NULL, NULL, NULL, 0, NULL);
    struct dt_study *a = study(r.spec, space), *b = study(r.spec, space);
    struct dt_event ev = DT_EVENT(DT_EVENT_METRIC);
    ev.trial = ev.run = 1;
    if (name) {
        ev.text = dt_xstrdup(name);
        ev.value = value;
        apply_both(a, b, &ev);
    }
    ev = (struct dt_event)DT_EVENT(DT_EVENT_ENDED);
    ev.trial = ev.run = 1;
    ev.run_s = 5;
    ev.note = dt_xstrdup("one\ntwo");
    apply_both(a, b, &ev);
    const struct dt_trial *t = dt_study_trial(a, 1), *u = dt_study_trial(b, 1);
    assert_true(t->cause == DT_CAUSE_NO_METRIC && u->cause == DT_CAUSE_NO_METRIC);
    assert_string_equal(t->text, expected);
    assert_string_equal(u->text, expected);
    assert_string_equal(t->note, "one\ntwo");
    assert_string_equal(u->note, "one\ntwo");
    dt_study_free(a);
    dt_study_free(b);
    dt_space_free(space);
    over(&r);
}

static void what_is_missing_is_said_with_its_pattern(void **state)
{
#define BY_ACC WORKERS ", \"objective\": {\"metric\": \"acc\", \"goal\": \"maximize\"}"
    (void)state;
    ends_with(
        BY_ACC, NULL, 0,
        "acc was not reported; reported: nothing (dt-tune metric reports it, or a pattern in SPEC "
        "finds it in the output: METRICS in dt-tune(1))");
    ends_with(BY_ACC ", \"metrics\": {\"patterns\": {\"acc\": \"A=([0-9.]+)\"}}", "loss", 1,
              "acc was not reported; the pattern \"A=([0-9.]+)\" matched no line with a number; "
              "reported: loss");
    ends_with(BY_ACC, "acc", NAN, "the last value of acc was not a finite number");
    ends_with(WORKERS
              ", \"objective\": {\"metric\": \"throughput\"}, \"metrics\": {\"step\": \"iter\"}",
              "iter", 1, "neither throughput nor iter, growing with time, was reported");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_patterns_are_refused),
        cmocka_unit_test(a_match_is_a_number_in_one_of_two_forms),
        cmocka_unit_test(spec_names_patterns_and_step),
        cmocka_unit_test(mistakes_in_spec_have_place_and_cure),
        IN_FOLDER(output_is_searched_line_by_line_to_its_end),
        IN_FOLDER(without_patterns_there_is_no_process),
        IN_FOLDER(the_first_form_of_a_number_counts),
        IN_FOLDER(output_of_tasks_that_goes_its_own_ways_is_searched_in_their_logs),
        IN_FOLDER(the_job_has_the_last_word),
        IN_FOLDER(the_job_has_the_last_word_each_time),
        IN_FOLDER(the_job_has_the_last_word_after_a_flood),
        IN_FOLDER(what_was_printed_last_is_found_however_late),
        IN_FOLDER(long_lines_of_output_are_passed_over),
        IN_FOLDER(a_flood_of_output_is_thinned_but_for_target_and_end),
        IN_FOLDER(more_output_than_can_be_searched_is_skipped_and_said),
        IN_FOLDER(each_look_gives_the_latest_value_of_each_metric),
        IN_FOLDER(the_step_is_what_spec_says_and_patterns_have_the_last_one),
        IN_FOLDER(the_first_value_that_reaches_the_target_is_not_missed),
        IN_FOLDER(a_time_that_cannot_be_is_that_of_the_reading),
        IN_FOLDER(a_restarted_tuner_goes_on_where_the_journal_ends),
        IN_FOLDER(what_is_read_again_counts_once),
        IN_FOLDER(what_cannot_be_read_is_said),
        IN_FOLDER(two_sources_that_differ_are_named),
        IN_FOLDER(only_so_many_metrics_count),
        IN_FOLDER(long_lines_of_the_file_are_passed_over),
        IN_FOLDER(a_flood_costs_a_bounded_time_and_its_end_counts),
        IN_FOLDER(a_file_that_is_written_anew_is_read_anew),
        IN_FOLDER(what_is_no_file_has_no_metrics),
        cmocka_unit_test(a_course_is_bounded_and_keeps_its_ends),
        IN_FOLDER(a_replay_gives_the_same_course),
        IN_FOLDER(what_is_missing_is_said_with_its_pattern),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
