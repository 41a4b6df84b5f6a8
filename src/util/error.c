#include "util/util.h"

#include <stdlib.h>

/* An error is one line, whatever the user's words hold. */
static char *format(const char *fmt, va_list ap)
{
    char *text = dt_xvasprintf(fmt, ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return text;
}

int dt_fail(struct dt_error *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    char *text = format(fmt, ap); /* before the old text goes: it may be an argument */
    va_end(ap);
    free(e->text);
    e->text = text;
    return -1;
}

int dt_fail_at(struct dt_error *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    char *place = format(fmt, ap);
    va_end(ap);
    char *text = dt_xasprintf("%s: %s", place, e->text ? e->text : "unknown error");
    free(place);
    free(e->text);
    e->text = text;
    return -1;
}

void dt_error_clear(struct dt_error *e)
{
    free(e->text);
    e->text = NULL;
}
