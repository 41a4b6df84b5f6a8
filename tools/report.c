#include "history/history.h"
#include "report/report.h"
#include "tools/tools.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage_text[] =
    "usage: dt-tune report [--format=text|json|csv|html|optuna] JOBID|DIR\n"
    "The report of a study, running or ended; JOBID means the folder dt-tune-JOBID here.\n"
    "  --format=html  a page with plots, one file that needs nothing beside it: ... >report.html\n"
    "  --format=optuna  a journal file for optuna-dashboard\n";

static int print(const struct loaded *l, const char *dir, const char *format, struct dt_error *e)
{
    if (strcmp(format, "html") == 0) {
        char *page = report_page(l->name, l->setup->job.name, l->study, &l->chronicle, e);
        if (!page)
            return -1;
        fputs(page, stdout);
        free(page);
    } else if (strcmp(format, "optuna") == 0) {
        struct json_object *o =
            dt_report_record(l->setup, l->study, l->name, dir, l->study->t_last);
        dt_export_optuna(stdout, o);
        json_object_put(o);
    } else if (strcmp(format, "csv") == 0) {
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
    return 0;
}

static bool is_format(const char *word)
{
    static const char *const formats[] = {"text", "json", "csv", "html", "optuna"};
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (strcmp(word, formats[i]) == 0)
            return true;
    return false;
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
    if (!is_format(format)) {
        dt_fail(&e, "report: --format: \"%s\" is not a format; text, json, csv, html or optuna",
                format);
        return fail_with(&e, EXIT_USAGE);
    }
    if (optind + 1 != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    char *dir = find_study("report", argv[optind], &e);
    if (!dir)
        return fail_with(&e, EXIT_USAGE);
    int rc = load_study(dir, &l, &e);
    if (rc == 0)
        rc = print(&l, dir, format, &e);
    loaded_free(&l);
    free(dir);
    return rc == 0 ? EXIT_DONE : fail_with(&e, EXIT_WORK_FAILED);
}
