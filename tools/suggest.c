#include "tuner/tuner.h"
#include "tools/tools.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: dt-tune suggest --spec=S.json [--observations=O.jsonl] [-n K] [--seed=N] "
    "[--cluster=FILE]\n"
    "Prints K configurations to try next (default 1), one JSON object a line: {\"config\": "
    "{...}}.\n"
    "Observations are JSON lines: {\"config\": {...}, \"value\": 12.3, \"status\": \"ok\", "
    "\"duration_s\": 61}\n"
    "with status ok, failed, censored (value is a bound), poor (without the quality asked for), "
    "pruned (stopped\n"
    "early) or pending; with SPEC's quality also \"metrics\": {\"accuracy\": 0.9}, with "
    "search.max_node_hours \"nodes\".\n";

struct observations {
    struct dt_observation *v;
    size_t n;
};

/* Of the budget: node-seconds or seconds. */
static double cost_of(const struct dt_spec *spec, struct json_object *o)
{
    double seconds = dt_json_num(o, "duration_s", 0);
    return isfinite(spec->max_node_hours) ? seconds * dt_json_num(o, "nodes", 1) : seconds;
}

static double margin_of(const struct dt_spec *spec, struct json_object *o)
{
    const struct dt_bound *b = &spec->quality;
    double x = b->metric ? dt_json_num(dt_json_get(o, "metrics"), b->metric, NAN) : NAN;
    return dt_bound_margin(b, x);
}

static double budget_left(const struct dt_spec *spec, const struct observations *all)
{
    double budget = isfinite(spec->max_node_hours) ? 3600 * spec->max_node_hours : spec->deadline;
    double spent = 0;
    for (size_t i = 0; i < all->n; i++)
        spent += all->v[i].cost;
    return isfinite(budget) ? fmax(1 - spent / budget, 0) : 0;
}

static int read_observation(const struct dt_spec *spec, const struct dt_space *space,
                            struct json_object *o, struct dt_observation *obs, struct dt_error *e)
{
    const char *status = dt_json_str(o, "status", "ok");
    double *x = dt_xcalloc(space->n, sizeof(double));
    *obs = (struct dt_observation){.x = x,
                                   .value = dt_json_num(o, "value", NAN),
                                   .cost = cost_of(spec, o),
                                   .margin = margin_of(spec, o)};
    int found = -1;
    for (int i = 0; i < DT_STATUS_VOID; i++)
        if (strcmp(status, dt_status_names[i]) == 0)
            found = i;
    if (found < 0)
        return dt_fail(e, "\"%s\" is not a status; ok, failed, censored, poor, pruned or pending",
                       status);
    obs->status = (enum dt_status)found;
    if (found != DT_STATUS_PENDING && found != DT_STATUS_FAILED && !isfinite(obs->value))
        return dt_fail(e, "status %s needs a finite \"value\"", status);
    return dt_config_from_json(space, dt_json_get(o, "config"), x, e);
}

static int read_observations(const char *path, const struct dt_spec *spec,
                             const struct dt_space *space, struct observations *all,
                             struct dt_error *e)
{
    char *text = dt_read_file(path, (size_t)256 << 20, NULL, e);
    int rc = text ? 0 : -1;
    size_t line = 0;
    for (char *s = text, *end; rc == 0 && s && *s; s = end) {
        end = strchrnul(s, '\n');
        if (*end)
            *end++ = '\0';
        line++;
        if (strspn(s, " \t\r") == strlen(s))
            continue;
        struct json_object *o = dt_json_parse(s, "line", e);
        all->v = dt_xrealloc(all->v, all->n + 1, sizeof(*all->v));
        rc = o ? read_observation(spec, space, o, &all->v[all->n++], e) : -1;
        json_object_put(o);
        if (rc < 0)
            dt_fail_at(e, "%s:%zu", path, line);
    }
    free(text);
    return rc;
}

static int suggest(const struct dt_spec *spec, const struct dt_space *space,
                   struct observations *all, size_t k, struct dt_error *e)
{
    struct dt_optimizer *o = dt_optimizer_new(dt_study_algorithm(spec, space), space, spec->seed, e);
    int rc = o ? 1 : -1;
    for (size_t i = 0; i < k && rc == 1; i++) {
        struct dt_context ctx = {.space = space,
                                 .obs = all->v,
                                 .nobs = all->n,
                                 .maximize = spec->maximize,
                                 .grows = dt_spec_objective_is_time(spec),
                                 .seed = spec->seed,
                                 .grid_levels = spec->grid_levels,
                                 .quality = spec->quality.metric != NULL,
                                 .budget_left = budget_left(spec, all)};
        double *x = dt_xcalloc(space->n, sizeof(double));
        rc = dt_optimizer_suggest(o, &ctx, x, e);
        all->v = dt_xrealloc(all->v, all->n + 1, sizeof(*all->v));
        all->v[all->n++] =
            (struct dt_observation){.x = x, .status = DT_STATUS_PENDING, .value = NAN};
        if (rc != 1)
            break;
        struct json_object *line = json_object_new_object();
        json_object_object_add(line, "config", dt_config_to_json(space, x));
        char *text = dt_json_text(line);
        puts(text);
        free(text);
        json_object_put(line);
    }
    if (rc == 0)
        fprintf(stderr, "dt-tune: every configuration of the space was tried\n");
    dt_optimizer_free(o);
    return rc < 0 ? -1 : 0;
}

struct wanted {
    const char *spec, *observations, *cluster;
    int64_t k, seed; /* seed -1: SPEC's */
};

static int suggest_wanted(const struct wanted *w, struct dt_error *e)
{
    struct observations all = {0};
    struct sketch k;
    int rc = sketch_read(&k, w->spec, w->cluster, 1, e);
    if (rc == 0 && w->seed >= 0)
        k.spec->seed = (uint64_t)w->seed;
    if (rc == 0 && w->observations)
        rc = read_observations(w->observations, k.spec, k.space, &all, e);
    if (rc == 0)
        rc = suggest(k.spec, k.space, &all, (size_t)w->k, e);
    for (size_t i = 0; i < all.n; i++)
        free((double *)all.v[i].x);
    free(all.v);
    sketch_free(&k);
    return rc;
}

int cmd_suggest(int argc, char **argv)
{
    static const struct option options[] = {
        {"spec", required_argument, NULL, 's'}, {"observations", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, 'r'}, {"cluster", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    struct wanted w = {.k = 1, .seed = -1};
    struct dt_error e = DT_ERROR_INIT;
    for (int c; (c = getopt_long(argc, argv, "n:", options, NULL)) != -1;) {
        bool bad = false;
        switch (c) {
        case 's':
            w.spec = optarg;
            break;
        case 'o':
            w.observations = optarg;
            break;
        case 'c':
            w.cluster = optarg;
            break;
        case 'n':
            bad = dt_parse_int64(optarg, &w.k) < 0 || w.k < 1 || w.k > 1000000;
            break;
        case 'r':
            bad = dt_parse_int64(optarg, &w.seed) < 0 || w.seed < 0;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return EXIT_DONE;
        default:
            return EXIT_USAGE;
        }
        if (bad) {
            dt_fail(&e, "suggest: \"%s\" is not a whole number in range", optarg);
            return fail_with(&e, EXIT_USAGE);
        }
    }
    if (!w.spec || optind != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    return suggest_wanted(&w, &e) < 0 ? fail_with(&e, EXIT_USAGE) : EXIT_DONE;
}
