#include "report/report.h"

#include <math.h>
#include <stdlib.h>

/* Whether its configuration was tried at lower fidelities alone, and this is the first such trial.
 */
static bool stands_for_spared(const struct dt_study *s, const struct dt_trial *t)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *o = &s->trials[i];
        bool counts = o->state == DT_TRIAL_ENDED && (o < t || dt_space_is_full(s->space, o->x));
        if (counts && dt_space_same_work(s->space, o->x, t->x))
            return false;
    }
    return true;
}

/* The costs of all trials at the highest fidelity, in seconds or node-seconds. Caller frees. */
static double *full_costs(const struct dt_study *s, bool by_nodes)
{
    struct dt_observation *o;
    struct dt_context ctx = dt_study_context(s, &o);
    double *cost = dt_xcalloc(ctx.nobs + 1, sizeof(double)); /* parts of trials, too */
    for (size_t i = 0; i < s->n; i++) {
        double took = dt_trial_time(s, &s->trials[i]) * (by_nodes ? s->trials[i].nodes : 1);
        o[i].cost = isfinite(took) ? took : 0;
    }
    dt_context_full_costs(&ctx, cost);
    free(o);
    return cost;
}

struct dt_thrift dt_report_thrift(const struct dt_study *s)
{
    struct dt_thrift r = {0};
    if (dt_space_fidelity(s->space) < 0)
        return r;
    double *seconds = full_costs(s, false), *node_s = full_costs(s, true);
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_trial *t = &s->trials[i];
        if (t->state != DT_TRIAL_ENDED || dt_space_is_full(s->space, t->x))
            continue;
        r.trials++;
        r.run_s += t->earlier.run_s + (isfinite(t->run_s) ? t->run_s : 0);
        r.node_s += t->earlier.node_s + (isfinite(t->run_s * t->nodes) ? t->run_s * t->nodes : 0);
        if (!stands_for_spared(s, t))
            continue;
        r.spared++;
        r.spared_run_s += seconds[i];
        r.spared_node_s += node_s[i];
    }
    free(seconds);
    free(node_s);
    return r;
}
