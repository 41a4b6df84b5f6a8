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

static int check(const char *path, const char *cluster_file, size_t tasks, struct dt_error *e)
{
    struct dt_cluster *cluster = NULL;
    struct dt_space *space = NULL;
    struct dt_job job = {.tasks = tasks, .cpus = 1};
    const char *why_layout;
    struct dt_spec *spec = dt_spec_read(path, e);
    bool ok = spec && (!cluster_file || (cluster = read_cluster(cluster_file, NULL, e)) != NULL);
    struct dt_space_source source = {spec, &job, cluster};
    ok = ok && dt_natural_fill(spec, &job, cluster, e) == 0;
    if (ok && (space = dt_space_generate(&source, &why_layout, e)) != NULL) {
        char *text = dt_space_describe(space), *objective = dt_spec_objective_text(spec);
        printf("%s: valid\nobjective: %s\nsearch space:\n%s  %s\n", path, objective, text,
               why_layout);
        free(text);
        free(objective);
    }
    bool valid = space != NULL;
    dt_space_free(space);
    dt_cluster_free(cluster);
    dt_spec_free(spec);
    return valid ? 0 : -1;
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
