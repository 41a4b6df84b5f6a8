#include "space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dt_param_free(struct dt_param *p)
{
    for (size_t i = 0; p->labels && i < p->nvalues; i++)
        free(p->labels[i]);
    free(p->labels);
    free(p->values);
    free(p->name);
    free(p->when);
    free(p->when_place);
    free(p->place);
    *p = (struct dt_param){0};
}

void dt_param_copy(struct dt_param *to, const struct dt_param *from)
{
    *to = *from;
    to->name = dt_xstrdup(from->name);
    to->when = from->when ? dt_xstrdup(from->when) : NULL;
    to->when_place = from->when_place ? dt_xstrdup(from->when_place) : NULL;
    to->place = from->place ? dt_xstrdup(from->place) : NULL;
    if (from->values) {
        to->values = dt_xcalloc(from->nvalues, sizeof(double));
        memcpy(to->values, from->values, from->nvalues * sizeof(double));
    }
    if (from->labels) {
        to->labels = dt_xcalloc(from->nvalues, sizeof(char *));
        for (size_t i = 0; i < from->nvalues; i++)
            to->labels[i] = dt_xstrdup(from->labels[i]);
    }
}

double dt_param_count(const struct dt_param *p)
{
    if (p->values)
        return (double)p->nvalues;
    if (p->step <= 0)
        return p->low == p->high ? 1 : INFINITY;
    /* a hair more than the division says: 0..1 by 0.1 has 11 values whatever 0.1 is in binary */
    return floor((p->high - p->low) / p->step * (1 + 1e-12) + 1e-9) + 1;
}

double dt_param_nth(const struct dt_param *p, size_t i)
{
    if (p->values)
        return p->values[i];
    double x = p->low + (double)i * p->step;
    if (p->kind == DT_PARAM_INT)
        return x;
    /* the number that the user means: 0 + 3 * 0.1 is 0.3 and not 0.30000000000000004 */
    char *s = dt_xasprintf("%.12g", x);
    x = strtod(s, NULL);
    free(s);
    return x;
}

double dt_param_at(const struct dt_param *p, double u)
{
    double n = dt_param_count(p);
    if (p->values || (isfinite(n) && !p->log)) {
        double i = floor(u * n);
        return dt_param_nth(p, (size_t)(i < 0 ? 0 : i >= n ? n - 1 : i));
    }
    double low = p->low, high = p->high;
    if (p->step <= 0 && (u <= 0 || u >= 1)) /* the ends themselves, whatever exp(log()) gives */
        return u <= 0 ? low : high;
    if (p->step > 0) { /* so that both ends get a full share */
        low -= fmin(0.5 * p->step, p->log ? 0.5 * low : INFINITY);
        high += 0.5 * p->step;
    }
    double x = p->log ? exp(log(low) + u * (log(high) - log(low))) : low + u * (high - low);
    if (p->step > 0)
        return dt_param_nth(p, (size_t)fmin(fmax(round((x - p->low) / p->step), 0), n - 1));
    return fmin(fmax(x, p->low), p->high);
}

bool dt_param_contains(const struct dt_param *p, double x)
{
    if (p->values) {
        for (size_t i = 0; i < p->nvalues; i++)
            if (p->values[i] == x)
                return true;
        return false;
    }
    if (!(x >= p->low && x <= p->high))
        return false;
    return p->step <= 0 || fabs(remainder(x - p->low, p->step)) <= 1e-9 * p->step;
}

char *dt_param_text(const struct dt_param *p, double x)
{
    if (isnan(x))
        return dt_xstrdup("as submitted");
    for (size_t i = 0; p->labels && i < p->nvalues; i++)
        if (p->values[i] == x)
            return dt_xstrdup(p->labels[i]);
    return dt_format_double(x);
}

int dt_param_parse(const struct dt_param *p, const char *text, double *x, struct dt_error *e)
{
    uint64_t mib;
    for (size_t i = 0; p->labels && i < p->nvalues; i++) {
        if (strcmp(p->labels[i], text) == 0) {
            *x = p->values[i];
            return 0;
        }
    }
    if (p->kind == DT_PARAM_LABEL)
        return dt_fail(e, "\"%s\" is not one of the choices of %s", text, p->name);
    if (dt_parse_double(text, x) < 0) {
        if (!p->labels || dt_parse_mem(text, &mib) < 0)
            return dt_fail(e, "%s: \"%s\" is not a number", p->name, text);
        *x = (double)mib;
    }
    if (!dt_param_contains(p, *x))
        return dt_fail(e, "%s: %s is outside its domain", p->name, text);
    return 0;
}
