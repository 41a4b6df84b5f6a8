#include "expand/expand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *dt_space_why_not(void *arg, const struct dt_space *space, const double *x)
{
    const struct dt_space_source *source = arg;
    struct dt_shape shape;
    int layout = dt_space_index(space, "layout");
    int kind = dt_space_index(space, "ps_constraint");
    if (kind >= 0 && x[kind] > 0 && dt_space_value(space, x, "ps", 0) == 0)
        return "without servers there are no nodes for ps_constraint";
    if (layout >= 0 && space->params[layout].nvalues > 1 && x[layout] > 0 &&
        dt_space_value(space, x, "ps", 0) == 0)
        return "without servers there is one role, and layout het is the same as packed";
    if (source->spec->layout == DT_LAYOUT_STEPS)
        dt_shape_make_steps(space, x, source->job, &shape);
    else
        dt_shape_make(space, x, source->job, source->cluster, &shape);
    return dt_shape_why_not(&shape, source->job, source->cluster);
}

static const struct dt_param *find(const struct dt_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->nparams; i++)
        if (strcmp(spec->params[i].name, name) == 0)
            return &spec->params[i];
    return NULL;
}

static bool may_have_servers(const struct dt_spec *spec)
{
    for (size_t i = 0; i < spec->nparams; i++) {
        const struct dt_param *p = &spec->params[i];
        if (strcmp(p->name, "ps") != 0)
            continue;
        for (size_t j = 0; j < p->nvalues; j++)
            if (p->values[j] > 0)
                return true;
        return !p->values && p->high > 0;
    }
    return false;
}

/* The labels of the parameter "layout", and the reason for the choice. */
static const char *layouts(const struct dt_space_source *source, bool *packed, bool *het)
{
    const struct dt_spec *spec = source->spec;
    const struct dt_cluster *c = source->cluster;
    if (spec->layout == DT_LAYOUT_STEPS) {
        *packed = *het = false;
        return "layout steps: as asked; the trials are steps in the tuning job's own allocation "
               "and "
               "wait in no queue";
    }
    *packed = spec->layout != DT_LAYOUT_HET;
    *het = spec->layout != DT_LAYOUT_PACKED;
    if (!may_have_servers(spec)) {
        *packed = *het = false;
        return "layout packed: there is only one role, workers, so every trial is one plain job";
    }
    if (spec->layout == DT_LAYOUT_PACKED)
        return "layout packed: as asked";
    if (spec->layout == DT_LAYOUT_HET)
        return "layout het: as asked";
    if (c && !c->backfill) {
        *het = false;
        return "layout packed: heterogeneous jobs need the backfill scheduler, which this cluster "
               "does not run";
    }
    if (source->job->nodelist) {
        *het = false;
        return "layout packed: every heterogeneous component would demand all the nodes of "
               "--nodelist, and they never share one";
    }
    if (c && dt_cluster_nodes(c) < 2) {
        *het = false;
        return "layout packed: heterogeneous components never share a node, and there is only one "
               "node";
    }
    return "layouts packed and het: both can run here, and which is faster depends on the program";
}

static void add_number(struct dt_param *p, const char *name, double low, double high)
{
    *p = (struct dt_param){
        .name = dt_xstrdup(name), .kind = DT_PARAM_INT, .low = low, .high = high, .step = 1};
}

static void add_layout(struct dt_param *p, bool packed)
{
    *p = (struct dt_param){.name = dt_xstrdup("layout"), .kind = DT_PARAM_LABEL};
    p->values = dt_xcalloc(2, sizeof(double));
    p->labels = dt_xcalloc(2, sizeof(char *));
    if (packed)
        p->labels[p->nvalues++] = dt_xstrdup("packed");
    p->labels[p->nvalues++] = dt_xstrdup("het");
    p->values[1] = 1;
}

/* A name that exists nowhere is a mistake, not a kind of nodes to leave out. */
static int check_partition(const struct dt_cluster *c, const char *name, struct dt_error *e)
{
    struct dt_strv known = DT_STRV_INIT;
    if (!c->npartitions || dt_cluster_partition(c, name))
        return 0;
    for (size_t i = 0; i < c->npartitions; i++)
        dt_strv_add(&known, c->partitions[i].partition);
    char *list = dt_strv_join(&known, ", ");
    dt_fail(e, "there is no partition \"%s\"; there are: %s", name, list);
    free(list);
    dt_strv_free(&known);
    return -1;
}

static int check_features(const struct dt_cluster *c, const char *constraint, struct dt_error *e)
{
    char *missing = dt_features_missing(c->features, constraint);
    int rc = 0;
    if (missing)
        rc = dt_fail(e, "no node has the feature \"%s\"; there are: %s", missing,
                     *c->features ? c->features : "none");
    free(missing);
    return rc;
}

static int check_kinds(const struct dt_space_source *source, struct dt_error *e)
{
    static const char *const names[] = {"partition", "ps_constraint", "worker_constraint"};
    const struct dt_cluster *c = source->cluster;
    for (size_t i = 0; c && i < 3; i++) {
        int rc = 0;
        const struct dt_param *p = find(source->spec, names[i]);
        for (size_t j = 0; p && j < p->nvalues && rc == 0; j++)
            rc = i == 0 ? check_partition(c, p->labels[j], e) : check_features(c, p->labels[j], e);
        if (rc < 0)
            return dt_fail_at(e, "%s", p->place ? p->place : names[i]);
    }
    return 0;
}

/* Is it a number of the DT configuration that would be passed over? */
static bool is_missing(const char *column, const struct dt_param *params, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(params[i].name, column) == 0)
            return false;
    return dt_spec_is_dt_name(column);
}

/* What stands in the column of an inactive parameter does not matter. */
static int read_column(const struct dt_table *t, const char *path, const struct dt_conditions *when,
                       size_t i, double *rows, struct dt_error *e)
{
    const struct dt_param *p = &when->params[i];
    int column = dt_table_column(t, p->name, e);
    if (column < 0)
        return dt_fail_at(e, "%s", path);
    for (size_t r = 0; r < t->nrows; r++) {
        double *x = rows + r * when->n;
        x[i] = NAN;
        if (!dt_conditions_active(when, x, i) ||
            dt_param_parse(p, dt_table_cell(t, r, column), &x[i], e) == 0)
            continue;
        if (p->when)
            dt_fail_at(e, "where %s", p->when);
        return dt_fail_at(e, "%s:%zu", path, r + 2);
    }
    return 0;
}

/* The rows of a file whose columns are the parameters; *rows is owned by the caller. */
static int read_candidates(const char *path, const struct dt_conditions *when, double **rows,
                           size_t *nrows, struct dt_error *e)
{
    size_t n = when->n;
    struct dt_table *t = dt_table_read(path, e);
    int rc = t ? 0 : -1;
    *nrows = t ? t->nrows : 0;
    *rows = dt_xcalloc(*nrows * n, sizeof(double));
    for (size_t c = 0; t && c < t->columns.n && rc == 0; c++)
        if (is_missing(t->columns.v[c], when->params, n))
            rc = dt_fail(e, "%s: column \"%s\" needs its domain under \"dt\" in SPEC", path,
                         t->columns.v[c]);
    for (size_t k = 0; k < n && rc == 0; k++)
        rc = read_column(t, path, when, when->order[k], *rows, e);
    dt_table_free(t);
    return rc;
}

/* Errors name their place: a condition's is its own. */
static struct dt_space *space_of(struct dt_space_source *source, const struct dt_param *params,
                                 size_t n, const struct dt_fact *facts, size_t nfacts,
                                 struct dt_error *e)
{
    const struct dt_spec *spec = source->spec;
    struct dt_conditions *when = dt_conditions_new(params, n, facts, nfacts, e);
    struct dt_space *space = NULL;
    const char *place = spec->constraints_place;
    double *rows = NULL;
    size_t nrows = 0;
    if (!when)
        return NULL;
    if (spec->candidates && read_candidates(spec->candidates, when, &rows, &nrows, e) < 0) {
        place = spec->candidates_place;
        dt_fail_at(e, "candidates");
    } else {
        space = dt_space_new(params, n, &spec->constraints, facts, nfacts, dt_space_why_not, source,
                             rows, nrows, e);
    }
    if (!space && place)
        dt_fail_at(e, "%s", place);
    free(rows);
    dt_conditions_free(when);
    return space;
}

struct dt_space *dt_space_generate(struct dt_space_source *source, const char **why_layout,
                                   struct dt_error *e)
{
    const struct dt_spec *spec = source->spec;
    if (check_kinds(source, e) < 0)
        return NULL;
    struct dt_param *params = dt_xcalloc(spec->nparams + 2, sizeof(*params));
    struct dt_fact facts[DT_CLUSTER_FACTS];
    size_t n = 0;
    bool packed, het;
    for (size_t i = 0; i < spec->nparams; i++)
        if (!spec->params[i].hyper)
            dt_param_copy(&params[n++], &spec->params[i]);
    if (!find(spec, "workers")) {
        double tasks = (double)source->job->tasks;
        /* Nothing at all was said: up to four times the workers of the job as submitted. */
        add_number(&params[n++], "workers", spec->nparams ? tasks : 1,
                   spec->nparams ? tasks : 4 * tasks);
    }
    *why_layout = layouts(source, &packed, &het);
    if (het && !spec->candidates) /* a list of candidates says itself what may be tried */
        add_layout(&params[n++], packed);
    for (size_t i = 0; i < spec->nparams; i++)
        if (spec->params[i].hyper)
            dt_param_copy(&params[n++], &spec->params[i]);
    if (source->cluster)
        dt_cluster_facts(source->cluster, facts);
    struct dt_space *space =
        space_of(source, params, n, facts, source->cluster ? DT_CLUSTER_FACTS : 0, e);
    for (size_t i = 0; i < n; i++)
        dt_param_free(&params[i]);
    free(params);
    return space;
}
