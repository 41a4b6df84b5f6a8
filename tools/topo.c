#include "backend/backend.h"
#include "tools/tools.h"

#include <getopt.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: dt-tune topo [--cluster=FILE] [--node=NAME] [--partition=NAME] [--format=text|json]\n"
    "       dt-tune topo --save=FILE\n"
    "Shows what the cluster is made of: kinds of nodes, partitions, switches, licences, and the limits that "
    "bind you.\n"
    "  --cluster=FILE     of a file that --save has written, not of the cluster itself\n"
    "  --save=FILE        write it to FILE, for --cluster here and in other commands\n"
    "  --node=NAME        only this node\n"
    "  --partition=NAME   only this partition and its nodes\n"
    "  --format=FORMAT    text (default), or json: what --save writes\n";

struct wanted {
    const char *cluster, *save, *node, *partition;
    bool json;
};

static int save(const struct dt_system *s, const char *path, struct dt_error *e)
{
    struct json_object *o = dt_system_to_json(s);
    const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE);
    char *line = dt_xasprintf("%s\n", text);
    int rc = dt_write_file(path, line, strlen(line), 0644, e);
    free(line);
    json_object_put(o);
    return rc;
}

static void print(const struct dt_system *s, bool json)
{
    struct json_object *o = json ? dt_system_to_json(s) : NULL;
    char *text = json ? dt_json_text(o) : dt_system_text(s);
    printf("%s%s", text, json ? "\n" : "");
    free(text);
    json_object_put(o);
}

static int topo(const struct wanted *w)
{
    struct dt_error e = DT_ERROR_INIT;
    if (!w->cluster)
        slurm_init(NULL);
    struct dt_system *s = w->cluster ? read_system(w->cluster, &e) : dt_slurm_system(true, true, &e);
    if (!s)
        return fail_with(&e, w->cluster ? EXIT_USAGE : EXIT_WORK_FAILED);
    int code = EXIT_DONE;
    if (dt_system_keep(s, w->node, w->partition, &e) < 0)
        code = fail_with(&e, EXIT_USAGE);
    else if (w->save && save(s, w->save, &e) < 0)
        code = fail_with(&e, EXIT_USAGE);
    else if (!w->save)
        print(s, w->json);
    dt_system_free(s);
    return code;
}

int cmd_topo(int argc, char **argv)
{
    static const struct option options[] = {{"cluster", required_argument, NULL, 'c'},
                                            {"save", required_argument, NULL, 's'},
                                            {"node", required_argument, NULL, 'n'},
                                            {"partition", required_argument, NULL, 'p'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct wanted w = {0};
    struct dt_error e = DT_ERROR_INIT;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            w.cluster = optarg;
            break;
        case 's':
            w.save = optarg;
            break;
        case 'n':
            w.node = optarg;
            break;
        case 'p':
            w.partition = optarg;
            break;
        case 'f':
            w.json = strcmp(optarg, "json") == 0;
            if (!w.json && strcmp(optarg, "text") != 0) {
                dt_fail(&e, "topo: --format: choose \"text\" or \"json\", not \"%s\"", optarg);
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
    if (optind != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    return topo(&w);
}
