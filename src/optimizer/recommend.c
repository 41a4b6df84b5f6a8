/* Which of the tried configurations to recommend, and which to measure once more before.
 *
 * Runs are noisy, and of many the luckiest looks best. So the best is measured again, and a
 * configuration stands for the mean of its measurements. How large the noise is, repeated
 * measurements alone can tell: a model would take the ruggedness of the objective for noise.
 * Repeats go to the leader and to whoever may yet be better, whichever was measured less ("optimal
 * computing budget allocation", Chen and Lee 2011, in its simplest form). */
#include "optimizer/optimizer.h"

#include <math.h>
#include <stdlib.h>

/* Noise is relative to the value where all values are positive. */
#define USUAL_NOISE 0.02 /* expected before anything was repeated, worth one repetition */
#define LARGE_NOISE 0.1  /* feared until then */
#define NO_NOISE 0.012   /* up to here measuring again is of no use */
#define DOUBT 2          /* standard errors between two means that leave open which is better */

struct standing {
    size_t n, under_way;  /* measurements done, and to come */
    double mean, squares; /* of the values, smaller being better; of their deviations from it */
};

struct standings {
    struct standing *v; /* by the first observation of the configuration; n is 0 for others */
    size_t n, repeats;  /* observations; measurements beyond the first of each configuration */
    bool relative;
    double spread, noise;
};

static void take(struct standing *s, double value)
{
    double before = value - s->mean;
    s->mean += before / (double)++s->n;
    s->squares += before * (value - s->mean);
}

static double unit(const struct standings *all, size_t i)
{
    return all->relative ? fabs(all->v[i].mean) : all->spread;
}

/* The standard deviation of one measurement. */
static double noise(const struct standings *all)
{
    double squares = USUAL_NOISE * USUAL_NOISE;
    if (all->repeats == 0)
        return LARGE_NOISE;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].n > 1)
            squares += all->v[i].squares / fmax(unit(all, i) * unit(all, i), 1e-300);
    return sqrt(squares / (1 + (double)all->repeats));
}

static struct standings standings_of(const struct dt_context *ctx)
{
    struct standings all = {dt_xcalloc(ctx->nobs + 1, sizeof(*all.v)), ctx->nobs, 0, true, 0, 0};
    struct standing means = {0};
    for (size_t i = 0; i < ctx->nobs; i++) {
        const struct dt_observation *o = &ctx->obs[i];
        struct standing *s = &all.v[o->again ? o->again - 1 : i];
        if (o->status == DT_STATUS_OK && !o->part && dt_space_is_full(ctx->space, o->x)) {
            all.repeats += s->n > 0;
            all.relative &= o->value > 0;
            take(s, ctx->maximize ? -o->value : o->value);
        }
        s->under_way += o->status == DT_STATUS_PENDING;
    }
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].n)
            take(&means, all.v[i].mean);
    all.spread = means.n > 1 ? sqrt(means.squares / (double)(means.n - 1)) : 0;
    all.noise = noise(&all);
    return all;
}

/* What the mean may be off by. */
static double error_of(const struct standings *all, size_t i)
{
    return all->noise * unit(all, i) / sqrt((double)all->v[i].n);
}

static int leader(const struct standings *all)
{
    int best = -1;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].n && (best < 0 || all->v[i].mean < all->v[best].mean))
            best = (int)i;
    return best;
}

/* Who may most easily be better than the leader after all; -1: nobody. */
static int challenger(const struct standings *all, size_t lead)
{
    int who = -1;
    double least = DOUBT;
    for (size_t i = 0; i < all->n; i++) {
        if (!all->v[i].n || i == lead)
            continue;
        double behind = all->v[i].mean - all->v[lead].mean,
               doubt = hypot(error_of(all, i), error_of(all, lead));
        if (behind < least * doubt) {
            least = behind / doubt;
            who = (int)i;
        }
    }
    return who;
}

int dt_context_best(const struct dt_context *ctx)
{
    struct standings all = standings_of(ctx);
    int best = leader(&all);
    free(all.v);
    return best;
}

int dt_context_mean(const struct dt_context *ctx, size_t i, double *mean)
{
    struct standings all = standings_of(ctx);
    const struct standing *s = &all.v[ctx->obs[i].again ? ctx->obs[i].again - 1 : i];
    int n = (int)s->n;
    *mean = n ? (ctx->maximize ? -s->mean : s->mean) : NAN;
    free(all.v);
    return n;
}

int dt_context_repeat(const struct dt_context *ctx)
{
    struct standings all = standings_of(ctx);
    int lead = leader(&all), rival = lead < 0 ? -1 : challenger(&all, (size_t)lead), again = -1;
    if (rival >= 0 && all.noise > NO_NOISE) {
        const struct standing *l = &all.v[lead], *r = &all.v[rival];
        again = r->n + r->under_way < l->n + l->under_way ? rival : lead;
    }
    free(all.v);
    return again;
}
