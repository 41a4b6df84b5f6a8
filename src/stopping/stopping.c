#include "stopping/stopping.h"

#include <math.h>
#include <stdlib.h>

/* The best value among the first n; NAN where none is ok. */
static double best_of(const struct dt_observation *o, size_t n, bool maximize)
{
    double best = NAN;
    for (size_t i = 0; i < n; i++) {
        if (o[i].status != DT_STATUS_OK)
            continue;
        if (isnan(best) || (maximize ? o[i].value > best : o[i].value < best))
            best = o[i].value;
    }
    return best;
}

/* Failures in the middle of a study are no reason to stop. */
char *dt_stopping_limit(const struct dt_stopping *s, const struct dt_observation *finished,
                        size_t n, double now, double node_hours)
{
    size_t failures = 0;
    if (now >= s->deadline) {
        char *t = dt_format_duration(s->deadline);
        char *reason = dt_xasprintf("deadline: the study's time (%s) is over", t);
        free(t);
        return reason;
    }
    if (node_hours >= s->max_node_hours)
        return dt_xasprintf("node-hours: %.4g of %.4g are spent", node_hours, s->max_node_hours);
    while (failures < n && finished[failures].status == DT_STATUS_FAILED)
        failures++;
    if (s->max_failures && failures == n && failures >= s->max_failures)
        return dt_xasprintf("failures: the first %zu trials all failed", failures);
    if (n >= s->max_configs)
        return dt_xasprintf("maximum of configurations: %zu of %zu were tried", n, s->max_configs);
    return NULL;
}

char *dt_stopping_settled(const struct dt_stopping *s, const struct dt_observation *finished,
                          size_t n, bool maximize)
{
    if (n < s->min_configs || n <= s->window)
        return NULL;
    double before = best_of(finished, n - s->window, maximize),
           best = best_of(finished, n, maximize);
    if (isnan(before) || isnan(best))
        return NULL;
    double gain = fabs(best - before) / fmax(fabs(before), 1e-300);
    if (gain > s->min_improve)
        return NULL;
    return dt_xasprintf("improvement: the best improved by %.3g %% over the last %zu "
                        "configurations, no more than %.3g %%",
                        100 * gain, s->window, 100 * s->min_improve);
}
