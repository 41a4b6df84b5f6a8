#include "history/history.h"
#include "report/report.h"
#include "tools/tools.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage_text[] =
    "usage: dt-tune report [--format=text|json|csv] JOBID|DIR\n"
    "The report of a study, running or ended; JOBID means the folder dt-tune-JOBID here.\n";

struct loaded {
    struct dt_setup *setup;
    struct dt_study *study;
    char *name;
};

static int on_record(void *arg, struct json_object *record, struct dt_error *e)
{
    struct loaded *l = arg;
    if (!l->setup) {
        struct json_object *doc = dt_json_get(record, "study");
        l->name = dt_xstrdup(dt_json_str(record, "name", "?"));
        l->setup = doc ? dt_setup_from_json(doc, "", e) : NULL;
        if (!l->setup)
            return doc ? -1 : dt_fail(e, "it does not begin with a study");
        l->study = dt_study_new(l->setup->spec, l->setup->space, dt_setup_first(l->setup), e);
        if (l->study)
            l->study->past = dt_past_from_json(dt_json_get(record, "past"), l->setup->space);
        return l->study ? 0 : -1;
    }
    return dt_study_apply_record(l->study, record, e);
}

static char *find_dir(const char *what, struct dt_error *e)
{
    struct stat st;
    char *dir = stat(what, &st) == 0 ? dt_xstrdup(what) : dt_xasprintf("dt-tune-%s", what);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = '\0';
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        dt_fail(e, "report: there is neither a study's folder %s nor %s here", what, dir);
        free(dir);
        return NULL;
    }
    return dir;
}

static void print(const struct loaded *l, const char *dir, const char *format)
{
    if (strcmp(format, "csv") == 0) {
        dt_report_csv(stdout, l->study);
    } else if (strcmp(format, "json") == 0) {
        struct json_object *o = dt_report_json(l->study, l->name);
        puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(o);
    } else {
        char *best = dt_xasprintf("%s/best.sh", dir);
        char *command = command_text(best, l->setup->submission);
        struct stat st;
        dt_report_intro(stdout, l->setup, l->study, l->name, dir);
        dt_report_trials(stdout, l->study);
        dt_report_final(stdout, l->study, stat(best, &st) == 0 ? command : NULL);
        free(best);
        free(command);
    }
}

int cmd_report(int argc, char **argv)
{
    static const struct option options[] = {{"format", required_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *format = "text";
    struct dt_error e = DT_ERROR_INIT;
    struct loaded l = {0};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage_text, stdout);
            return EXIT_DONE;
        }
        if (c != 'f')
            return EXIT_USAGE;
        format = optarg;
    }
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0 && strcmp(format, "csv") != 0) {
        dt_fail(&e, "report: --format: \"%s\" is not a format; text, json or csv", format);
        return fail_with(&e, EXIT_USAGE);
    }
    if (optind + 1 != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    char *dir = find_dir(argv[optind], &e);
    if (!dir)
        return fail_with(&e, EXIT_USAGE);
    char *path = dt_xasprintf("%s/journal.jsonl", dir);
    int rc = dt_journal_read(path, on_record, &l, &e);
    if (rc == 0 && l.study)
        print(&l, dir, format);
    else if (rc == 0)
        rc = dt_fail(&e, "%s: the study has not begun", path);
    dt_study_free(l.study);
    dt_setup_free(l.setup);
    free(l.name);
    free(path);
    free(dir);
    return rc == 0 ? EXIT_DONE : fail_with(&e, EXIT_WORK_FAILED);
}
