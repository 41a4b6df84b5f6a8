#include "util/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int dt_parse_double(const char *s, double *out)
{
    char *end;
    if (!*s || isspace((unsigned char)*s) || strpbrk(s, "xXpP"))
        return -1;
    errno = 0;
    double x = strtod(s, &end);
    if (*end || !isfinite(x))
        return -1;
    *out = x;
    return 0;
}

int dt_parse_int64(const char *s, int64_t *out)
{
    char *end;
    if (!*s || isspace((unsigned char)*s))
        return -1;
    errno = 0;
    long long x = strtoll(s, &end, 10);
    if (*end || errno)
        return -1;
    *out = x;
    return 0;
}

int dt_parse_mem(const char *s, uint64_t *mib)
{
    char *end;
    if (!isdigit((unsigned char)*s))
        return -1;
    errno = 0;
    unsigned long long x = strtoull(s, &end, 10);
    if (errno || x > UINT64_MAX >> 21)
        return -1;
    switch (toupper((unsigned char)*end)) {
    case 'K':
        x = (x + 1023) / 1024;
        end++;
        break;
    case 'M':
        end++;
        break;
    case 'G':
        x *= 1024;
        end++;
        break;
    case 'T':
        x *= 1024 * 1024;
        end++;
        break;
    }
    if (toupper((unsigned char)*end) == 'B' && end[-1] && !isdigit((unsigned char)end[-1]))
        end++;
    if (*end)
        return -1;
    *mib = x;
    return 0;
}

/* Reads up to `max` colon-separated whole numbers; their count, or -1. */
static int colon_numbers(const char *s, double *v, int max)
{
    int n = 0;
    do {
        char *end;
        if (n == max || !isdigit((unsigned char)*s))
            return -1;
        v[n++] = (double)strtoull(s, &end, 10);
        s = end;
    } while (*s == ':' && s++);
    return *s ? -1 : n;
}

int dt_parse_time(const char *s, double *seconds)
{
    double v[3];
    if (!strcasecmp(s, "UNLIMITED") || !strcasecmp(s, "INFINITE")) {
        *seconds = INFINITY;
        return 0;
    }
    const char *dash = strchr(s, '-');
    if (dash) {
        char *end = NULL;
        double days = isdigit((unsigned char)*s) ? (double)strtoull(s, &end, 10) : 0;
        int n = colon_numbers(dash + 1, v, 3);
        if (!isdigit((unsigned char)*s) || end != dash || n < 1)
            return -1;
        *seconds = days * 86400 + v[0] * 3600 + (n > 1 ? v[1] * 60 : 0) + (n > 2 ? v[2] : 0);
        return 0;
    }
    switch (colon_numbers(s, v, 3)) {
    case 1:
        *seconds = v[0] * 60;
        return 0;
    case 2:
        *seconds = v[0] * 60 + v[1];
        return 0;
    case 3:
        *seconds = v[0] * 3600 + v[1] * 60 + v[2];
        return 0;
    }
    return -1;
}
