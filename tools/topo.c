#include "backend/backend.h"
#include "tools/tools.h"

#include <getopt.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: dt-tune topo [--cluster=FILE] [--node=NAME] [--partition=NAME] [--format=text|json]\n"
    "       dt-tune topo --save=FILE\n"
    "       dt-tune topo --gather [--node=NAME] [--partition=NAME]\n"
    "       dt-tune topo --machine=FILE|here [--plan=TASKS] [--format=text|json|xml]\n"
    "Shows what the cluster is made of: kinds of nodes, partitions, switches, licences, and the limits that "
    "bind you.\n"
    "  --cluster=FILE     of a file that --save has written, not of the cluster itself\n"
    "  --save=FILE        write it to FILE, for --cluster here and in other commands\n"
    "  --node=NAME        only this node\n"
    "  --partition=NAME   only this partition and its nodes\n"
    "  --gather           ask a node of every kind what it is made of, by a short job, and keep the answers\n"
    "  --machine=FILE     a node: what hwloc knows of it, from its XML file; here: of this host\n"
    "  --plan=TASKS       who would sit where on that node: ROLE:CPUS[:GPUS], N of them NxROLE:CPUS:GPUS, ...\n"
    "  --format=FORMAT    text (default), or json: what --save writes; xml: hwloc's, of this host only\n";

struct wanted {
    const char *cluster, *save, *node, *partition, *machine, *plan;
    enum topo_format format;
    bool gather;
};

static int save(const struct dt_system *s, const char *path, struct dt_error *e)
{
    struct json_object *o = dt_system_to_json(s);
    const char *text = json_object_to_json_string_ext(
        o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *line = dt_xasprintf("%s\n", text);
    int rc = dt_write_file(path, line, strlen(line), 0644, e);
    free(line);
    json_object_put(o);
    return rc;
}

static void print(const struct dt_system *s, bool json)
{
    print_either(json ? NULL : dt_system_text(s), json ? dt_system_to_json(s) : NULL);
}

static int topo(const struct wanted *w)
{
    struct dt_error e = DT_ERROR_INIT;
    if (w->machine)
        return print_machine(w->machine, w->plan, w->format, &e) < 0 ? fail_with(&e, EXIT_USAGE)
                                                                     : EXIT_DONE;
    if (!w->cluster)
        slurm_init(NULL);
    struct dt_system *s =
        w->cluster ? read_system(w->cluster, &e) : dt_slurm_system(true, true, &e);
    if (!s)
        return fail_with(&e, w->cluster ? EXIT_USAGE : EXIT_WORK_FAILED);
    int code = EXIT_DONE;
    if (dt_system_keep(s, w->node, w->partition, &e) < 0)
        code = fail_with(&e, EXIT_USAGE);
    else if (w->save && save(s, w->save, &e) < 0)
        code = fail_with(&e, EXIT_USAGE);
    else if (w->gather && gather_machines(s, &e) < 0)
        code = fail_with(&e, EXIT_WORK_FAILED);
    else if (!w->save && !w->gather)
        print(s, w->format == TOPO_JSON);
    if (code == EXIT_DONE && w->node && !w->save && !w->gather && w->format == TOPO_TEXT)
        print_known_machine(&s->kinds[0].size);
    dt_system_free(s);
    return code;
}

static int read_format(const char *text, enum topo_format *format, struct dt_error *e)
{
    static const char *const names[] = {[TOPO_TEXT] = "text", [TOPO_JSON] = "json", [TOPO_XML] = "xml"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(text, names[i]) == 0) {
            *format = (enum topo_format)i;
            return 0;
        }
    return dt_fail(e, "topo: --format: choose \"text\" or \"json\", not \"%s\"", text);
}

static int check_wanted(const struct wanted *w, struct dt_error *e)
{
    bool cluster = w->cluster || w->save || w->node || w->partition || w->gather;
    if (w->machine && cluster)
        return dt_fail(e, "topo: --machine is about one node's file, the other options are about the cluster");
    if (w->plan && !w->machine)
        return dt_fail(e, "topo: --plan needs a node: --machine=FILE, or --machine=here");
    if (w->format == TOPO_XML && (!w->machine || w->plan))
        return dt_fail(e, "topo: --format=xml is for --machine=here alone");
    if (w->gather && (w->cluster || w->save))
        return dt_fail(e, "topo: --gather asks the nodes of this cluster; leave --cluster and --save out");
    return 0;
}

int cmd_topo(int argc, char **argv)
{
    static const struct option options[] = {{"cluster", required_argument, NULL, 'c'},
                                            {"save", required_argument, NULL, 's'},
                                            {"node", required_argument, NULL, 'n'},
                                            {"partition", required_argument, NULL, 'p'},
                                            {"machine", required_argument, NULL, 'm'},
                                            {"plan", required_argument, NULL, 'P'},
                                            {"gather", no_argument, NULL, 'g'},
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
        case 'm':
            w.machine = optarg;
            break;
        case 'P':
            w.plan = optarg;
            break;
        case 'g':
            w.gather = true;
            break;
        case 'f':
            if (read_format(optarg, &w.format, &e) < 0)
                return fail_with(&e, EXIT_USAGE);
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
    if (check_wanted(&w, &e) < 0)
        return fail_with(&e, EXIT_USAGE);
    return topo(&w);
}
