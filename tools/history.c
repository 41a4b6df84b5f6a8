#include "history/history.h"
#include "tools/tools.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage_text[] =
    "usage: dt-tune history [--key=KEY|--script=FILE] [--show=STUDY|--compare=STUDY,...] "
    "[--format=FORMAT]\n"
    "       dt-tune history --prune [--key=KEY] [--script=FILE] [--study=STUDY] [--older=DAYS] "
    "[--dry-run]\n"
    "       dt-tune history --import=FILE.csv --spec=SPEC.json [--value=COLUMN] [SCRIPT [ARGS]]\n"
    "Lists what earlier studies have found, the last first.\n"
    "  --key=KEY      only those of a workload: the KEY column, or \"history\": {\"key\": ...} of "
    "SPEC\n"
    "  --script=FILE  only those of this batch script, whatever its arguments\n"
    "  --show=STUDY   all that one study has observed; STUDY: a name or folder\n"
    "  --compare=STUDY,STUDY,...  what several studies have found, side by side; the first is "
    "the measure\n"
    "  --prune        forget the studies that all of --key, --script, --study and --older name\n"
    "  --older=DAYS   with --prune: those that ended longer ago\n"
    "  --dry-run      with --prune: only list them\n"
    "  --import=FILE  rows of a table, with a column for each parameter of SPEC, as a study of "
    "SCRIPT\n"
    "  --value=COLUMN where the objective is in it (value); also status, duration_s and nodes "
    "are read\n"
    "  --format=FORMAT  text or json; with --show also csv, jsonl (for dt-tune suggest) and "
    "optuna (a\n"
    "                 journal file for optuna-dashboard)\n"
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

/* A study by its name or folder, with an error where there is none. */
static struct json_object *find(const struct dt_history *h, const char *option, const char *study,
                                const char *dir, struct dt_error *e)
{
    char *folder = realpath(study, NULL);
    struct json_object *record = dt_history_study(h, study);
    if (!record && folder)
        record = dt_history_study(h, folder);
    free(folder);
    if (!record)
        dt_fail(e,
                "history: --%s: there is no study \"%s\" in %s; dt-tune history lists "
                "those that are there",
                option, study, dir);
    return record;
}

static int show(const struct dt_history *h, const char *study, const char *format, const char *dir,
                struct dt_error *e)
{
    struct json_object *record = find(h, "show", study, dir, e);
    if (!record)
        return -1;
    if (strcmp(format, "json") == 0)
        print_json(json_object_get(record));
    else if (strcmp(format, "csv") == 0)
        dt_export_csv(stdout, record);
    else if (strcmp(format, "jsonl") == 0)
        dt_export_observations(stdout, record);
    else if (strcmp(format, "optuna") == 0)
        dt_export_optuna(stdout, record);
    else
        print_study(record);
    return 0;
}

/* ---- several studies ---- */

/* How many times better the best is than the first study's. */
static char *ratio_cell(struct json_object *first, struct json_object *record)
{
    bool large = strcmp(dt_json_str(record, "goal", ""), "maximize") == 0;
    double a = dt_json_num(dt_json_get(first, "best"), "value", NAN),
           b = dt_json_num(dt_json_get(record, "best"), "value", NAN),
           ratio = large ? b / a : a / b;
    return isfinite(ratio) && ratio > 0 ? dt_xasprintf("%.3g x", ratio) : dt_xstrdup("-");
}

static double total_seconds(struct json_object *record)
{
    struct json_object *list = dt_json_get(record, "observations");
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += dt_json_num(json_object_array_get_idx(list, i), "duration_s", 0);
    return sum;
}

static void print_comparison(struct json_object *const *v, size_t n)
{
    static const char *const titles[] = {"STUDY", "WHEN",   "TRIALS",       "SECONDS",
                                         "BEST",  "BETTER", "CONFIGURATION"};
    struct columns c = {.titles = titles, .n = sizeof(titles) / sizeof(*titles)};
    for (size_t i = 0; i < n; i++) {
        struct json_object *best = dt_json_get(v[i], "best");
        char **cell = add_row(&c);
        cell[0] = dt_xstrdup(dt_json_str(v[i], "study", "?"));
        cell[1] = time_cell(dt_json_num(v[i], "time", NAN));
        cell[2] = dt_xasprintf("%ld", (long)dt_json_int(v[i], "trials", 0));
        cell[3] = number_cell(total_seconds(v[i]));
        cell[4] = number_cell(dt_json_num(best, "value", NAN));
        cell[5] = ratio_cell(v[0], v[i]);
        cell[6] = config_words(dt_json_get(best, "config"));
    }
    char *asked = objective_cell(v[0]);
    printf("objective: %s (%s)\n\n", asked, dt_json_str(v[0], "goal", "?"));
    free(asked);
    print_columns(&c);
}

/* Values of different objectives say nothing about one another. */
static int same_question(struct json_object *a, struct json_object *b, struct dt_error *e)
{
    static const char *const keys[] = {"objective", "goal", "target", "quality"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strcmp(dt_json_str(a, keys[i], ""), dt_json_str(b, keys[i], "")) != 0)
            return dt_fail(
                e,
                "history: --compare: the %s of study %s is \"%s\" and that of study %s \"%s\": "
                "they "
                "cannot be compared",
                keys[i], dt_json_str(a, "study", "?"), dt_json_str(a, keys[i], ""),
                dt_json_str(b, "study", "?"), dt_json_str(b, keys[i], ""));
    return 0;
}

static int compare(const struct dt_history *h, const char *studies, const char *format,
                   const char *dir, struct dt_error *e)
{
    struct dt_strv names = DT_STRV_INIT;
    dt_strv_split(&names, studies, ",");
    struct json_object **v = dt_xcalloc(names.n + 1, sizeof(struct json_object *));
    int rc =
        names.n > 1
            ? 0
            : dt_fail(e, "history: --compare: name at least two studies, as in --compare=123,145");
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        v[i] = find(h, "compare", names.v[i], dir, e);
        rc = v[i] ? same_question(v[0], v[i], e) : -1;
    }
    if (rc == 0 && strcmp(format, "json") == 0) {
        struct json_object *o = json_object_new_object(), *list = json_object_new_array();
        for (size_t i = 0; i < names.n; i++)
            json_object_array_add(list, json_object_get(v[i]));
        json_object_object_add(o, "version", json_object_new_int(1));
        json_object_object_add(o, "studies", list);
        print_json(o);
    } else if (rc == 0) {
        print_comparison(v, names.n);
    }
    free(v);
    dt_strv_free(&names);
    return rc;
}

/* ---- what is wanted ---- */

struct request {
    struct filter filter;
    const char *show, *compare, *study, *import, *spec, *value, *format;
    bool prune, dry_run;
    double before;       /* --older: ended before then; NaN */
    char *const *script; /* what stands behind the options */
};

static bool is_pruned(void *arg, struct json_object *record)
{
    const struct request *r = arg;
    bool wanted = passes(&r->filter, record) &&
                  (!r->study || strcmp(dt_json_str(record, "study", ""), r->study) == 0 ||
                   strcmp(dt_json_str(record, "dir", ""), r->study) == 0) &&
                  (isnan(r->before) || dt_json_num(record, "time", 0) < r->before);
    if (wanted)
        printf("%s %s\n",
               r->dry_run ? "would forget" : "forgotten:", dt_json_str(record, "study", "?"));
    return wanted;
}

static int prune(const char *dir, struct request *r, struct dt_error *e)
{
    size_t n;
    if (!r->filter.key && !*r->filter.script && !r->study && isnan(r->before))
        return dt_fail(
            e, "history: --prune: of which studies? Add --older=DAYS, --study, --key or --script");
    if (dt_history_prune(dir, is_pruned, r, r->dry_run, &n, e) < 0)
        return dt_fail_at(e, "history: --prune");
    if (n == 0)
        fprintf(stderr, "dt-tune: %s: no such study is in this history\n", dir);
    return 0;
}

static int read_script(const char *path, struct filter *f, struct dt_error *e)
{
    char *text = dt_read_text(path, DT_SCRIPT_MAX, e);
    if (!text)
        return dt_fail_at(e, "history: --script");
    dt_workload_script(text, f->script);
    free(text);
    return 0;
}

static int read_days(const char *text, double *before, struct dt_error *e)
{
    double days;
    if (dt_parse_double(text, &days) < 0 || days < 0)
        return dt_fail(e, "history: --older: \"%s\" is not a number of days", text);
    *before = dt_now() - 86400 * days;
    return 0;
}

/* Whether what was asked for goes together. */
static int check_request(const struct request *r, struct dt_error *e)
{
    static const char *const formats[] = {"text", "json", "csv", "jsonl", "optuna"};
    size_t n = sizeof(formats) / sizeof(*formats), most = r->show ? n : 2;
    bool known = false;
    for (size_t i = 0; i < most; i++)
        known = known || strcmp(r->format, formats[i]) == 0;
    if (!known)
        return dt_fail(e, "history: --format: \"%s\" is not a format%s", r->format,
                       r->show ? "; text, json, csv, jsonl or optuna"
                               : " here; text or json (others go with --show)");
    if ((r->show != NULL) + (r->compare != NULL) + r->prune + (r->import != NULL) > 1)
        return dt_fail(e, "history: only one of --show, --compare, --prune and --import at a time");
    if (!r->prune && (r->study || r->dry_run || !isnan(r->before)))
        return dt_fail(e, "history: --study, --older and --dry-run belong to --prune");
    if (!r->import && (r->spec || r->value))
        return dt_fail(e, "history: --spec and --value belong to --import");
    if (r->import && !r->spec)
        return dt_fail(e, "history: --import: --spec=SPEC.json has to say what the columns are");
    if (!r->import && *r->script)
        return dt_fail(e, "history: \"%s\": only options are taken; --show=%s shows one study",
                       *r->script, *r->script);
    return 0;
}

/* 0: to be done, 1: help was asked for, -1: wrong. */
static int read_options(int argc, char **argv, struct request *r, struct dt_error *e)
{
    static const struct option options[] = {
        {"key", required_argument, NULL, 'k'},     {"script", required_argument, NULL, 's'},
        {"show", required_argument, NULL, 'S'},    {"format", required_argument, NULL, 'f'},
        {"compare", required_argument, NULL, 'c'}, {"prune", no_argument, NULL, 'p'},
        {"study", required_argument, NULL, 't'},   {"older", required_argument, NULL, 'o'},
        {"dry-run", no_argument, NULL, 'n'},       {"import", required_argument, NULL, 'i'},
        {"spec", required_argument, NULL, 'e'},    {"value", required_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    *r = (struct request){.format = "text", .before = NAN};
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        const char **words[] = {
            ['k'] = &r->filter.key, ['S'] = &r->show,   ['f'] = &r->format, ['c'] = &r->compare,
            ['t'] = &r->study,      ['i'] = &r->import, ['e'] = &r->spec,   ['v'] = &r->value};
        if (c == 'h')
            return 1;
        if (c == '?')
            return dt_fail(e, "history: see dt-tune history --help");
        if (c == 'p')
            r->prune = true;
        else if (c == 'n')
            r->dry_run = true;
        else if (c == 's' && read_script(optarg, &r->filter, e) < 0)
            return -1;
        else if (c == 'o' && read_days(optarg, &r->before, e) < 0)
            return -1;
        else if (c != 's' && c != 'o')
            *words[c] = optarg;
    }
    r->script = argv + optind;
    return check_request(r, e);
}

/* What has to be read first. */
static int look(const char *dir, const struct request *r, struct dt_error *e)
{
    struct dt_history h = {0};
    if (dt_history_read(dir, NULL, r->show || r->compare, &h, e) < 0) {
        dt_fail_at(e, "history");
        return EXIT_WORK_FAILED;
    }
    for (size_t i = 0; i < h.warnings.n; i++)
        fprintf(stderr, "dt-tune: warning: %s\n", h.warnings.v[i]);
    int rc = 0;
    if (r->show)
        rc = show(&h, r->show, r->format, dir, e);
    else if (r->compare)
        rc = compare(&h, r->compare, r->format, dir, e);
    else if (strcmp(r->format, "json") == 0)
        print_list_json(&h, &r->filter, dir);
    else
        print_list(&h, &r->filter, dir);
    dt_history_free(&h);
    return rc < 0 ? EXIT_USAGE : EXIT_DONE;
}

int cmd_history(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct request r;
    int rc = read_options(argc, argv, &r, &e), code;
    if (rc > 0) {
        fputs(usage_text, stdout);
        return EXIT_DONE;
    }
    if (rc < 0)
        return fail_with(&e, EXIT_USAGE);
    char *dir = dt_history_dir();
    if (!dir) {
        dt_fail(&e, "history: nobody knows where your home is: set DT_TUNE_HISTORY to the folder");
        return fail_with(&e, EXIT_WORK_FAILED);
    }
    if (r.prune)
        code = prune(dir, &r, &e) < 0 ? EXIT_USAGE : EXIT_DONE;
    else if (r.import)
        code = import_history(dir, r.import, r.spec, r.value, r.script, &e) < 0 ? EXIT_USAGE
                                                                                : EXIT_DONE;
    else
        code = look(dir, &r, &e);
    free(dir);
    return code == EXIT_DONE ? code : fail_with(&e, code);
}
