#include "history/history.h"
#include "tools/tools.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage_text[] =
    "usage: dt-tune history [--key=KEY|--script=FILE] [--show=STUDY] [--format=text|json]\n"
    "Lists what earlier studies have found, the last first.\n"
    "  --key=KEY      only those of a workload: the KEY column, or \"history\": {\"key\": ...} of "
    "SPEC\n"
    "  --script=FILE  only those of this batch script, whatever its arguments\n"
    "  --show=STUDY   all that one study has observed; STUDY: a name or folder\n"
    "sbatch --dt-apply=STUDY SCRIPT submits a job in a study's best configuration.\n";

#define WIDTH 100
#define KEY_SHOWN 12
#define LONGEST_NAME 24

/* ---- columns ---- */

struct columns {
    const char *const *titles;
    size_t n;     /* the last is wrapped */
    char **cells; /* rows of n; owned */
    size_t rows;
};

static char **add_row(struct columns *c)
{
    c->cells = dt_xrealloc(c->cells, (c->rows + 1) * c->n, sizeof(*c->cells));
    return c->cells + c->n * c->rows++;
}

/* Text that fills the rest of a line, from column `at`, and goes on below itself. */
static void print_wrapped(const char *text, size_t at)
{
    size_t room = at + 20 < WIDTH ? WIDTH - at : 20;
    for (bool first = true; *text || first; first = false) {
        size_t n = strlen(text);
        if (n > room) {
            for (n = room; n > 0 && text[n] != ' '; n--)
                ;
            n = n ? n : strcspn(text, " ");
        }
        printf("%*s%.*s\n", first ? 0 : (int)at, "", (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
}

static void print_row(const struct columns *c, const size_t *width, const char *const *cells)
{
    size_t at = 0;
    for (size_t i = 0; i + 1 < c->n; i++) {
        printf("%-*s  ", (int)width[i], cells[i]);
        at += width[i] + 2;
    }
    print_wrapped(cells[c->n - 1], at);
}

/* Prints the table and frees its cells. */
static void print_columns(struct columns *c)
{
    size_t *width = dt_xcalloc(c->n, sizeof(*width));
    for (size_t i = 0; i < c->n; i++) {
        width[i] = strlen(c->titles[i]);
        for (size_t r = 0; r < c->rows; r++) {
            size_t len = strlen(c->cells[r * c->n + i]);
            width[i] = len > width[i] ? len : width[i];
        }
    }
    print_row(c, width, c->titles);
    for (size_t r = 0; r < c->rows; r++)
        print_row(c, width, (const char *const *)c->cells + r * c->n);
    for (size_t i = 0; i < c->rows * c->n; i++)
        free(c->cells[i]);
    free(c->cells);
    free(width);
}

/* At most `most` bytes of the text, with dots where there is more. Caller frees. */
static char *cut(const char *text, size_t most)
{
    return strlen(text) <= most ? dt_xstrdup(text) : dt_xasprintf("%.*s...", (int)most - 3, text);
}

/* ---- cells ---- */

static char *time_cell(double t)
{
    time_t seconds = (time_t)t;
    struct tm tm;
    char text[32] = "-";
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
    return dt_xstrdup(text);
}

static char *number_cell(double x)
{
    return isfinite(x) ? dt_xasprintf("%.5g", x) : dt_xstrdup("-");
}

/* "time accuracy>=0.9": what was asked. */
static char *objective_cell(struct json_object *record)
{
    const char *target = dt_json_str(record, "target", NULL),
               *quality = dt_json_str(record, "quality", NULL);
    char *text =
        dt_xasprintf("%s%s%s%s%s", dt_json_str(record, "objective", "?"), target ? " " : "",
                     target ? target : "", quality ? " " : "", quality ? quality : "");
    char *cell = cut(text, LONGEST_NAME);
    free(text);
    return cell;
}

static char *key_cell(struct json_object *record)
{
    const char *key = dt_json_str(record, "key", NULL);
    return key ? cut(key, LONGEST_NAME)
               : dt_xstrndup(dt_json_str(record, "signature", ""), KEY_SHOWN);
}

/* ---- the list ---- */

struct filter {
    const char *key; /* or NULL */
    char script[17]; /* or "" */
};

static bool passes(const struct filter *f, struct json_object *record)
{
    return (!f->key || dt_history_has_key(record, f->key)) &&
           (!*f->script || strcmp(dt_json_str(record, "script", ""), f->script) == 0);
}

static void print_list(const struct dt_history *h, const struct filter *f, const char *dir)
{
    static const char *const titles[] = {"WHEN",   "STUDY", "KEY",          "OBJECTIVE",
                                         "TRIALS", "BEST",  "CONFIGURATION"};
    struct columns c = {.titles = titles, .n = sizeof(titles) / sizeof(*titles)};
    for (size_t i = 0; i < h->n; i++) {
        struct json_object *record = h->v[i], *best = dt_json_get(record, "best");
        if (!passes(f, record))
            continue;
        char **cell = add_row(&c);
        cell[0] = time_cell(dt_json_num(record, "time", NAN));
        cell[1] = dt_xstrdup(dt_json_str(record, "study", "?"));
        cell[2] = key_cell(record);
        cell[3] = objective_cell(record);
        cell[4] = dt_xasprintf("%ld", (long)dt_json_int(record, "trials", 0));
        cell[5] = number_cell(dt_json_num(best, "value", NAN));
        cell[6] = config_words(dt_json_get(best, "config"));
    }
    if (c.rows)
        print_columns(&c);
    else
        fprintf(stderr, "dt-tune: %s: no %sstudy is in this history\n", dir,
                f->key || *f->script ? "such " : "");
}

static void print_json(struct json_object *o)
{
    puts(json_object_to_json_string_ext(o,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}

static void print_list_json(const struct dt_history *h, const struct filter *f, const char *dir)
{
    struct json_object *o = json_object_new_object(), *list = json_object_new_array();
    for (size_t i = 0; i < h->n; i++)
        if (passes(f, h->v[i]))
            json_object_array_add(list, json_object_get(h->v[i]));
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "history", json_object_new_string(dir));
    json_object_object_add(o, "studies", list);
    print_json(o);
}

/* ---- one study ---- */

static void print_result(struct json_object *record)
{
    struct json_object *best = dt_json_get(record, "best");
    char *when = time_cell(dt_json_num(record, "time", NAN)), *asked = objective_cell(record);
    char *value = number_cell(dt_json_num(best, "value", NAN));
    char *config = config_words(dt_json_get(best, "config"));
    printf("study %s of %s, ended %s\n", dt_json_str(record, "study", "?"),
           dt_json_str(record, "job_name", "?"), when);
    printf("records:   %s\n", dt_json_str(record, "dir", "?"));
    printf("workload:  %s\n", dt_json_str(record, "signature", "?"));
    printf("objective: %s (%s)\n", asked, dt_json_str(record, "goal", "?"));
    printf("stopped:   ");
    print_wrapped(dt_json_str(record, "stop_reason", "?"), 11);
    printf("best:      %s at ", value);
    print_wrapped(config, 15 + strlen(value));
    free(when);
    free(asked);
    free(value);
    free(config);
}

static void print_study(struct json_object *record)
{
    static const char *const titles[] = {"TRIAL",   "STATUS", "VALUE",
                                         "SECONDS", "NODES",  "CONFIGURATION"};
    struct columns c = {.titles = titles, .n = sizeof(titles) / sizeof(*titles)};
    struct json_object *list = dt_json_get(record, "observations");
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_array_get_idx(list, i);
        char **cell = add_row(&c);
        cell[0] = dt_xasprintf("%ld", (long)dt_json_int(o, "trial", 0));
        cell[1] = dt_xstrdup(dt_json_str(o, "status", "?"));
        cell[2] = number_cell(dt_json_num(o, "value", NAN));
        cell[3] = number_cell(dt_json_num(o, "duration_s", NAN));
        cell[4] = number_cell(dt_json_num(o, "nodes", NAN));
        cell[5] = config_words(dt_json_get(o, "config"));
    }
    print_result(record);
    putchar('\n');
    print_columns(&c);
}

static int show(const struct dt_history *h, const char *study, bool json, const char *dir,
                struct dt_error *e)
{
    char *folder = realpath(study, NULL);
    struct json_object *record = dt_history_study(h, study);
    if (!record && folder)
        record = dt_history_study(h, folder);
    free(folder);
    if (!record)
        return dt_fail(e,
                       "history: --show: there is no study \"%s\" in %s; dt-tune history lists "
                       "those that are there",
                       study, dir);
    if (json)
        print_json(json_object_get(record));
    else
        print_study(record);
    return 0;
}

struct request {
    struct filter filter;
    const char *study;
    bool json;
};

static int read_script(const char *path, struct filter *f, struct dt_error *e)
{
    char *text = dt_read_text(path, DT_SCRIPT_MAX, e);
    if (!text)
        return dt_fail_at(e, "history: --script");
    dt_workload_script(text, f->script);
    free(text);
    return 0;
}

/* 0: to be done, 1: help was asked for, -1: wrong. */
static int read_options(int argc, char **argv, struct request *r, struct dt_error *e)
{
    static const struct option options[] = {
        {"key", required_argument, NULL, 'k'},  {"script", required_argument, NULL, 's'},
        {"show", required_argument, NULL, 'S'}, {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'k':
            r->filter.key = optarg;
            break;
        case 's':
            if (read_script(optarg, &r->filter, e) < 0)
                return -1;
            break;
        case 'S':
            r->study = optarg;
            break;
        case 'f':
            r->json = strcmp(optarg, "json") == 0;
            if (!r->json && strcmp(optarg, "text") != 0)
                return dt_fail(e, "history: --format: \"%s\" is not a format; text or json",
                               optarg);
            break;
        case 'h':
            return 1;
        default:
            return dt_fail(e, "history: see dt-tune history --help");
        }
    }
    if (optind < argc)
        return dt_fail(e, "history: \"%s\": only options are taken; --show=%s shows one study",
                       argv[optind], argv[optind]);
    return 0;
}

int cmd_history(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct request r = {0};
    struct dt_history h = {0};
    int rc = read_options(argc, argv, &r, &e);
    if (rc > 0) {
        fputs(usage_text, stdout);
        return EXIT_DONE;
    }
    if (rc < 0)
        return fail_with(&e, EXIT_USAGE);
    char *dir = dt_history_dir();
    if (!dir)
        dt_fail(&e, "history: nobody knows where your home is: set DT_TUNE_HISTORY to the folder");
    else if (dt_history_read(dir, NULL, r.study != NULL, &h, &e) < 0)
        dt_fail_at(&e, "history");
    for (size_t i = 0; i < h.warnings.n; i++)
        fprintf(stderr, "dt-tune: warning: %s\n", h.warnings.v[i]);
    int code = e.text ? EXIT_WORK_FAILED : EXIT_DONE;
    if (!e.text && r.study)
        code = show(&h, r.study, r.json, dir, &e) < 0 ? EXIT_USAGE : EXIT_DONE;
    else if (!e.text && r.json)
        print_list_json(&h, &r.filter, dir);
    else if (!e.text)
        print_list(&h, &r.filter, dir);
    dt_history_free(&h);
    free(dir);
    return code == EXIT_DONE ? code : fail_with(&e, code);
}
