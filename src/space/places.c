#include "space/cluster_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void dt_places_free(struct dt_places *p)
{
    free(p->v);
    *p = (struct dt_places){0};
}

/* The first run that ends at or behind the place. */
static size_t run_at(const struct dt_places *p, size_t first)
{
    size_t i = p->n;
    while (i && p->v[i - 1].first + p->v[i - 1].n >= first)
        i--;
    return i;
}

void dt_places_add(struct dt_places *p, size_t first, size_t n)
{
    size_t at = run_at(p, first), end = at;
    struct dt_run run = {first, n};
    for (; end < p->n && p->v[end].first <= first + n; end++) {
        size_t low = p->v[end].first < run.first ? p->v[end].first : run.first;
        size_t one = p->v[end].first + p->v[end].n, other = run.first + run.n;
        run = (struct dt_run){low, (one > other ? one : other) - low};
    }
    if (end == at)
        p->v = dt_xrealloc(p->v, p->n + 1, sizeof(*p->v));
    memmove(p->v + at + 1, p->v + end, (p->n - end) * sizeof(*p->v));
    p->n += 1 - (end - at);
    p->v[at] = run;
}

void dt_places_join(struct dt_places *to, const struct dt_places *from)
{
    for (size_t i = 0; i < from->n; i++)
        dt_places_add(to, from->v[i].first, from->v[i].n);
}

static size_t count(const struct dt_places *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->v[i].n;
    return n;
}

static char *as_text(const struct dt_places *p)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < p->n; i++) {
        dt_buf_addf(&b, "%s%zu", i ? "," : "", p->v[i].first);
        if (p->v[i].n > 1)
            dt_buf_addf(&b, "-%zu", p->v[i].first + p->v[i].n - 1);
    }
    return dt_buf_take(&b);
}

static bool read_number(const char **text, size_t *out)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    *out = strtoul(*text, &end, 10);
    *text = end;
    return *out > 0 && *out < UINT32_MAX;
}

static int read_text(const char *text, struct dt_places *p)
{
    for (size_t least = 1, first, last;; text++) {
        if (!read_number(&text, &first) || first < least)
            return -1;
        last = first;
        if (*text == '-' && (text++, !read_number(&text, &last) || last < first))
            return -1;
        dt_places_add(p, first, last - first + 1);
        least = last + 1;
        if (*text != ',')
            return *text ? -1 : 0;
    }
}

void dt_put_places(struct json_object *o, const struct dt_places *p)
{
    char *text = p->n ? as_text(p) : NULL;
    dt_put_text(o, "places", text);
    free(text);
}

void dt_take_places(struct dt_fields *f, struct dt_places *p, size_t nodes)
{
    char *text = NULL;
    dt_fields_text(f, "places", &text);
    if (text && !f->failed && (read_text(text, p) < 0 || count(p) != nodes))
        dt_fields_fail(f, "places",
                       "as many places as there are nodes are needed here, in rising order, as in "
                       "\"1-4,7\"");
    free(text);
}
