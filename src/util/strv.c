#include "util/util.h"

#include <stdlib.h>
#include <string.h>

/* There is room for a power of two of pointers, at least four, the last NULL among them. */
void dt_strv_take(struct dt_strv *l, char *s)
{
    size_t room = l->n + 1;
    if (l->n == 0)
        l->v = dt_xrealloc(l->v, 4, sizeof(*l->v));
    else if (room >= 4 && (room & (room - 1)) == 0)
        l->v = dt_xrealloc(l->v, 2 * room, sizeof(*l->v));
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void dt_strv_add(struct dt_strv *l, const char *s)
{
    dt_strv_take(l, dt_xstrdup(s));
}

void dt_strv_addf(struct dt_strv *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dt_strv_take(l, dt_xvasprintf(fmt, ap));
    va_end(ap);
}

void dt_strv_addv(struct dt_strv *l, char *const *v)
{
    for (; v && *v; v++)
        dt_strv_add(l, *v);
}

void dt_strv_split(struct dt_strv *l, const char *s, const char *seps)
{
    while (*(s += strspn(s, seps))) {
        size_t n = strcspn(s, seps);
        dt_strv_take(l, dt_xstrndup(s, n));
        s += n;
    }
}

char *dt_strv_join(const struct dt_strv *l, const char *sep)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            dt_buf_add(&b, sep);
        dt_buf_add(&b, l->v[i]);
    }
    return dt_buf_take(&b);
}

void dt_strv_free(struct dt_strv *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct dt_strv)DT_STRV_INIT;
}
