#include "util/util.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct dt_table *t;
    struct dt_strv row;
    bool header_done, ragged;
    size_t line;
};

static void on_field(void *text, size_t len, void *arg)
{
    struct reading *r = arg;
    if (r->ragged) /* its fields are counted for the message */
        return;
    dt_strv_take(&r->row, dt_xstrndup(text ? text : "", len));
}

static void on_row(int c, void *arg)
{
    struct reading *r = arg;
    struct dt_table *t = r->t;
    (void)c;
    if (r->ragged)
        return;
    r->line++;
    if (!r->header_done) {
        t->columns = r->row;
        r->row = (struct dt_strv)DT_STRV_INIT;
        r->header_done = true;
        return;
    }
    r->ragged = r->row.n != t->columns.n;
    if (r->ragged)
        return;
    t->cells = dt_xrealloc(t->cells, (t->nrows + 1) * t->columns.n, sizeof(char *));
    memcpy(t->cells + t->nrows++ * t->columns.n, r->row.v, r->row.n * sizeof(char *));
    free(r->row.v); /* the strings moved into cells */
    r->row = (struct dt_strv)DT_STRV_INIT;
}

struct dt_table *dt_table_read(const char *path, struct dt_error *e)
{
    size_t len;
    char *text = dt_read_file(path, 256 * 1024 * 1024, &len, e);
    if (!text)
        return NULL;
    struct reading r = {.t = dt_xcalloc(1, sizeof(*r.t)), .row = DT_STRV_INIT};
    struct csv_parser parser;
    csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
    size_t mark = dt_starts_with(text, "\xef\xbb\xbf") ? 3 : 0; /* spreadsheets begin with one */
    bool bad = csv_parse(&parser, text + mark, len - mark, on_field, on_row, &r) != len - mark ||
               csv_fini(&parser, on_field, on_row, &r) != 0;
    csv_free(&parser);
    free(text);
    if (bad)
        dt_fail(e, "%s:%zu: not valid CSV (a stray quote?)", path, r.line + 1);
    else if (r.ragged)
        dt_fail(e, "%s:%zu: %zu fields, the header has %zu", path, r.line, r.row.n, r.t->columns.n);
    else if (r.t->nrows == 0)
        dt_fail(e, "%s: no rows below the header line", path);
    bad = bad || r.ragged || r.t->nrows == 0;
    dt_strv_free(&r.row);
    if (bad) {
        dt_table_free(r.t);
        return NULL;
    }
    return r.t;
}

void dt_table_free(struct dt_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->nrows * t->columns.n; i++)
        free(t->cells[i]);
    free(t->cells);
    dt_strv_free(&t->columns);
    free(t);
}

int dt_table_column(const struct dt_table *t, const char *name, struct dt_error *e)
{
    int found = -1;
    for (size_t i = 0; i < t->columns.n; i++) {
        if (strcmp(t->columns.v[i], name) != 0)
            continue;
        if (found >= 0)
            return dt_fail(e, "two columns are named \"%s\"; rename one", name);
        found = (int)i;
    }
    if (found >= 0)
        return found;
    const char *near = dt_nearest(name, (const char *const *)t->columns.v, t->columns.n);
    return dt_fail(e, "no column \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

const char *dt_table_cell(const struct dt_table *t, size_t row, int column)
{
    return t->cells[row * t->columns.n + (size_t)column];
}
