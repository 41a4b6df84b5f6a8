#include "util/util.h"

#include <stdlib.h>
#include <string.h>

void dt_buf_addn(struct dt_buf *b, const char *s, size_t n)
{
    if (b->len + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 128;
        while (cap < b->len + n + 1)
            cap *= 2;
        b->s = dt_xrealloc(b->s, cap, 1);
        b->cap = cap;
    }
    if (n)
        memcpy(b->s + b->len, s, n);
    b->len += n;
    b->s[b->len] = '\0';
}

void dt_buf_add(struct dt_buf *b, const char *s)
{
    dt_buf_addn(b, s, strlen(s));
}

void dt_buf_addf(struct dt_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = dt_xvasprintf(fmt, ap);
    va_end(ap);
    dt_buf_add(b, s);
    free(s);
}

char *dt_buf_take(struct dt_buf *b)
{
    char *s = b->s ? b->s : dt_xstrdup("");
    *b = (struct dt_buf)DT_BUF_INIT;
    return s;
}

void dt_buf_free(struct dt_buf *b)
{
    free(b->s);
    *b = (struct dt_buf)DT_BUF_INIT;
}
