/* Results from elsewhere, as a study in the history. */
#include "history/history.h"
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The columns of the table; -1: it has none. */
struct columns {
    int *params, value, status, duration, nodes, quality;
};

struct import {
    const char *path;
    struct dt_table *table;
    struct dt_spec *spec;
    struct dt_space *space; /* all that the domains allow: what was run can be run */
    struct columns at;
};

static int optional(const struct dt_table *t, const char *name)
{
    struct dt_error e = DT_ERROR_INIT;
    int found = dt_table_column(t, name, &e);
    dt_error_clear(&e);
    return found;
}

static int find_columns(struct import *m, const char *value, struct dt_error *e)
{
    struct columns *c = &m->at;
    c->params = dt_xcalloc(m->space->n, sizeof(int));
    for (size_t i = 0; i < m->space->n; i++)
        if ((c->params[i] = dt_table_column(m->table, m->space->params[i].name, e)) < 0)
            return dt_fail_at(e, "%s", m->path);
    if ((c->value = dt_table_column(m->table, value, e)) < 0)
        return dt_fail_at(e, "%s: --value says where the objective is", m->path);
    const char *quality = m->spec->quality.metric;
    c->status = optional(m->table, "status");
    c->duration = optional(m->table, "duration_s");
    if (c->duration < 0)
        c->duration = optional(m->table, "run_s"); /* as a report has it */
    c->nodes = optional(m->table, "nodes");
    c->quality = quality ? optional(m->table, quality) : -1;
    return 0;
}

/* NaN where the cell is empty or there is no such column. */
static int read_number(const struct import *m, size_t row, int column, double *x,
                       struct dt_error *e)
{
    const char *text = column < 0 ? "" : dt_table_cell(m->table, row, column);
    *x = NAN;
    if (!*text || dt_parse_double(text, x) == 0)
        return 0;
    return dt_fail(e, "%s:%zu: \"%s\" is not a finite number", m->path, row + 2, text);
}

/* An empty cell of a hyperparameter is what the script itself has. */
static int read_config(const struct import *m, size_t row, double *x, struct dt_error *e)
{
    for (size_t i = 0; i < m->space->n; i++) {
        const char *text = dt_table_cell(m->table, row, m->at.params[i]);
        x[i] = NAN;
        if (*text && dt_param_parse(&m->space->params[i], text, &x[i], e) < 0)
            return dt_fail_at(e, "%s:%zu", m->path, row + 2);
    }
    dt_space_settle(m->space, x);
    for (size_t i = 0; i < m->space->n; i++)
        if (isnan(x[i]) && !m->space->params[i].hyper && dt_space_active(m->space, x, i))
            return dt_fail(e, "%s:%zu: %s has no value", m->path, row + 2,
                           m->space->params[i].name);
    return 0;
}

static void add_number(struct json_object *o, const char *key, double x)
{
    if (isfinite(x))
        json_object_object_add(o, key, dt_json_number(x));
}

/* What a row says beside its configuration. */
struct row {
    const char *status;
    double value, duration, nodes, quality;
};

static const char *said(const struct import *m, size_t row)
{
    return m->at.status < 0 ? "" : dt_table_cell(m->table, row, m->at.status);
}

/* A trial that is not over, or ended through no fault of its configuration, teaches nothing. */
static bool teaches(const struct import *m, size_t row)
{
    return strcmp(said(m, row), "void") != 0 && strcmp(said(m, row), "pending") != 0;
}

static int read_result(const struct import *m, size_t row, struct row *r, struct dt_error *e)
{
    static const char *const known[] = {"ok", "failed", "censored", "poor", "pruned"};
    const struct columns *c = &m->at;
    if (read_number(m, row, c->value, &r->value, e) < 0 ||
        read_number(m, row, c->duration, &r->duration, e) < 0 ||
        read_number(m, row, c->nodes, &r->nodes, e) < 0 ||
        read_number(m, row, c->quality, &r->quality, e) < 0)
        return -1;
    r->status = *said(m, row) ? said(m, row) : isnan(r->value) ? "failed" : "ok";
    bool is_known = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        is_known = is_known || strcmp(r->status, known[i]) == 0;
    if (!is_known)
        return dt_fail(e, "%s:%zu: status \"%s\" is none of ok, failed, censored, poor and pruned",
                       m->path, row + 2, r->status);
    if (isnan(r->value) && strcmp(r->status, "failed") != 0)
        return dt_fail(e, "%s:%zu: \"%s\" without a value", m->path, row + 2, r->status);
    return 0;
}

/* One row as an observation. NULL, with an error, where it is none. */
static struct json_object *read_row(const struct import *m, size_t row, struct dt_error *e)
{
    double *x = dt_xcalloc(m->space->n, sizeof(double));
    struct row r;
    struct json_object *o = NULL;
    if (read_config(m, row, x, e) == 0 && read_result(m, row, &r, e) == 0) {
        bool is_time = isnan(r.duration) && dt_spec_objective_is_time(m->spec);
        o = json_object_new_object();
        json_object_object_add(o, "trial", json_object_new_int64((int64_t)row + 1));
        json_object_object_add(o, "config", dt_config_to_json(m->space, x));
        if (strcmp(r.status, "failed") != 0)
            add_number(o, "value", r.value);
        json_object_object_add(o, "status", json_object_new_string(r.status));
        add_number(o, "duration_s", is_time ? r.value : r.duration);
        add_number(o, "nodes", r.nodes);
        if (m->spec->quality.metric)
            add_number(o, "margin", dt_bound_margin(&m->spec->quality, r.quality));
    }
    free(x);
    return o;
}

static struct json_object *read_rows(const struct import *m, struct dt_error *e)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < m->table->nrows; i++) {
        struct json_object *o = teaches(m, i) ? read_row(m, i, e) : NULL;
        if (!o && teaches(m, i)) {
            json_object_put(list);
            return NULL;
        }
        if (o)
            json_object_array_add(list, o);
    }
    return list;
}

/* The best row, as a record has it; NULL where none succeeded. */
static struct json_object *best_of(const struct import *m, struct json_object *rows)
{
    struct json_object *best = NULL;
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *o = json_object_array_get_idx(rows, i);
        double value = dt_json_num(o, "value", NAN), before = dt_json_num(best, "value", NAN);
        bool better = !best || (m->spec->maximize ? value > before : value < before);
        if (strcmp(dt_json_str(o, "status", ""), "ok") == 0 && better)
            best = o;
    }
    if (!best)
        return NULL;
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "trial", json_object_get(dt_json_get(best, "trial")));
    json_object_object_add(o, "config", json_object_get(dt_json_get(best, "config")));
    json_object_object_add(o, "value", json_object_get(dt_json_get(best, "value")));
    json_object_object_add(o, "measurements", json_object_new_int(1));
    return o;
}

static struct json_object *record_of(const struct import *m, const char *script,
                                     const struct dt_strv *args, struct json_object *rows)
{
    struct json_object *o = json_object_new_object(), *space = json_object_new_array();
    struct dt_workload w;
    char *full = realpath(m->path, NULL),
         *name = dt_xasprintf("import-%ld-%ld", (long)dt_now(), (long)getpid());
    json_object_object_add(o, "version", json_object_new_int(1));
    json_object_object_add(o, "time", dt_json_number(dt_now()));
    json_object_object_add(o, "study", json_object_new_string(name));
    json_object_object_add(o, "dir", json_object_new_string(full ? full : m->path));
    json_object_object_add(o, "job_name", json_object_new_string("import"));
    dt_workload_make(&w, m->spec, script, args);
    dt_workload_to_json(&w, m->spec, args, o);
    json_object_object_add(o, "complete", json_object_new_boolean(true));
    json_object_object_add(o, "stop_reason", json_object_new_string("imported"));
    json_object_object_add(o, "trials",
                           json_object_new_int64((int64_t)json_object_array_length(rows)));
    json_object_object_add(o, "best", best_of(m, rows));
    for (size_t i = 0; i < m->space->n; i++)
        json_object_array_add(space, dt_report_param(&m->space->params[i]));
    json_object_object_add(o, "space", space);
    json_object_object_add(o, "observations", json_object_get(rows));
    free(full);
    free(name);
    return o;
}

static void import_close(struct import *m)
{
    dt_table_free(m->table);
    dt_space_free(m->space);
    dt_spec_free(m->spec);
    free(m->at.params);
}

int import_history(const char *dir, const char *csv, const char *spec, const char *value,
                   char *const *script, struct dt_error *e)
{
    struct import m = {.path = csv, .spec = dt_spec_read(spec, e)};
    struct dt_strv args = DT_STRV_INIT, none = DT_STRV_INIT;
    char *text = NULL;
    bool ok = m.spec != NULL;
    if (ok && !*script && !m.spec->history_key)
        ok = dt_fail(e,
                     "history: --import: which program? Name its batch script (and its arguments) "
                     "last, or give "
                     "%s a \"history\": {\"key\": ...}",
                     spec) == 0;
    ok = ok && (text = *script ? dt_read_text(*script, DT_SCRIPT_MAX, e) : dt_xstrdup("")) &&
         (m.table = dt_table_read(csv, e)) &&
         (m.space = dt_space_new(m.spec->params, m.spec->nparams, &none, NULL, 0, NULL, NULL, NULL,
                                 0, e)) &&
         find_columns(&m, value ? value : "value", e) == 0;
    if (*script)
        dt_strv_addv(&args, script + 1);
    struct json_object *rows = ok ? read_rows(&m, e) : NULL;
    struct json_object *record = rows ? record_of(&m, text, &args, rows) : NULL;
    int rc = record ? dt_history_append(dir, record, e) : -1;
    if (rc == 0)
        printf("%s: %zu observations, as study %s\n", csv, json_object_array_length(rows),
               dt_json_str(record, "study", "?"));
    json_object_put(record);
    json_object_put(rows);
    dt_strv_free(&args);
    free(text);
    import_close(&m);
    return rc;
}
