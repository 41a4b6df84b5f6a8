#include "util/util.h"

#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
    if (!p) {
        fputs("dt-tune: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *dt_xcalloc(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size ? size : 1));
}

void *dt_xrealloc(void *p, size_t n, size_t size)
{
    return checked(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *dt_xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *dt_xstrndup(const char *s, size_t n)
{
    return checked(strndup(s, n));
}

char *dt_xvasprintf(const char *fmt, va_list ap)
{
    char *s = NULL;
    return checked(vasprintf(&s, fmt, ap) < 0 ? NULL : s);
}

char *dt_xasprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = dt_xvasprintf(fmt, ap);
    va_end(ap);
    return s;
}
