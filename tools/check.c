#include "tools/tools.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: dt-tune check [--cluster=FILE] [--tasks=N] SPEC.json\n"
    "Says whether the SPEC is valid, how large its search space is, and what is excluded and why.\n"
    "  --cluster=FILE   nodes as JSON: {\"nodes\": [{\"count\": 4, \"cpus\": 16, \"mem\": "
    "65536}]}; else nothing is\n"
    "                   excluded for want of nodes\n"
    "  --tasks=N        tasks of the job as submitted (default 1)\n";

static int check(const char *path, const char *cluster, size_t tasks, struct dt_error *e)
{
    struct sketch k;
    int rc = sketch_read(&k, path, cluster, tasks, e);
    if (rc == 0) {
        char *text = dt_space_describe(k.space), *objective = dt_spec_objective_text(k.spec);
        printf("%s: valid\nobjective: %s\nsearch space:\n%s  %s\n", path, objective, text,
               k.why_layout);
        free(text);
        free(objective);
    }
    sketch_free(&k);
    return rc;
}

int cmd_check(int argc, char **argv)
{
    static const struct option options[] = {{"cluster", required_argument, NULL, 'c'},
                                            {"tasks", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *cluster = NULL;
    struct dt_error e = DT_ERROR_INIT;
    int64_t tasks = 1;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            cluster = optarg;
            break;
        case 't':
            if (dt_parse_int64(optarg, &tasks) < 0 || tasks < 1) {
                dt_fail(&e, "check: --tasks: \"%s\" is not a number above 0", optarg);
                return fail_with(&e, EXIT_USAGE);
            }
            break;
        case 'h':
            fputs(usage_text, stdout);
            return EXIT_DONE;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind + 1 != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    return check(argv[optind], cluster, (size_t)tasks, &e) < 0 ? fail_with(&e, EXIT_USAGE)
                                                               : EXIT_DONE;
}
