/* What trials at lower fidelities would have cost at the highest. */
#include "optimizer/belief.h"
#include "model/portable.h"

#include <stdlib.h>
#include <string.h>

void dt_context_full_costs(const struct dt_context *ctx, double *cost)
{
    const struct dt_space *s = ctx->space;
    struct dt_encoding *encoding = dt_encoding_new(s);
    struct dt_observed *costs = dt_observed_costs(ctx, encoding);
    double *rows = dt_xcalloc(ctx->nobs * s->n + 1, sizeof(double));
    struct dt_points p = {0};
    for (size_t i = 0; i < ctx->nobs; i++) {
        memcpy(rows + i * s->n, ctx->obs[i].x, s->n * sizeof(double));
        dt_space_fill(s, rows + i * s->n);
        dt_points_add(&p, encoding, rows + i * s->n);
        cost[i] = 0;
    }
    struct dt_belief *b = costs && costs->known.n ? dt_belief_new(costs, false) : NULL;
    if (b) {
        dt_belief_mean(b, costs, &p, cost, NULL);
        for (size_t i = 0; i < ctx->nobs; i++)
            cost[i] = dt_exp(cost[i]);
    }
    dt_belief_free(b);
    dt_observed_free(costs);
    dt_encoding_free(encoding);
    dt_points_free(&p);
    free(rows);
}
