/* Times the Bayesian optimizer's suggestions: suggest_time N prints one JSON object. 8 parameters,
 * 10,000 candidates, N of them observed. `cold_s` is the first suggestion of a process that has to
 * learn everything from the N observations, as after a restart; `warm_s` the mean of the next ones,
 * each after one more observation, as in a running study. */
#include "optimizer/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PARAMS = 8, CANDIDATES = 10000, LEVELS = 10, WARM = 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Not from getrusage(), whose figure begins with that of the process that forked this one. */
static double peak_mib(void)
{
    char line[256];
    double kib = NAN;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib / 1024;
}

static double value_of(const double *x)
{
    double y = 10;
    for (int k = 0; k < PARAMS; k++)
        y += (1 + k % 3) * pow(x[k] - 2 - k % 4, 2) + 2 * sin(3 * x[k] + x[(k + 1) % PARAMS]);
    return y;
}

static void die(const struct dt_error *e)
{
    fprintf(stderr, "suggest_time: %s\n", e->text ? e->text : "unknown error");
    exit(1);
}

/* Every candidate is one of the 10^8 points of the grid, spread by a step that is coprime to their
 * number. */
static struct dt_space *make_space(struct dt_error *e)
{
    static char names[PARAMS][3];
    struct dt_param params[PARAMS];
    double *points = dt_xcalloc((size_t)CANDIDATES * PARAMS, sizeof(*points));
    for (int k = 0; k < PARAMS; k++) {
        snprintf(names[k], sizeof(names[k]), "p%d", k);
        params[k] = (struct dt_param){.name = names[k],
                                      .kind = DT_PARAM_INT,
                                      .hyper = true,
                                      .low = 0,
                                      .high = LEVELS - 1,
                                      .step = 1};
    }
    for (size_t i = 0; i < CANDIDATES; i++) {
        uint64_t number = (i * 61803399u) % 100000000u;
        for (int k = 0; k < PARAMS; k++, number /= LEVELS)
            points[i * PARAMS + (size_t)k] = (double)(number % LEVELS);
    }
    struct dt_strv none = DT_STRV_INIT;
    struct dt_space *s =
        dt_space_new(params, PARAMS, &none, NULL, 0, NULL, NULL, points, CANDIDATES, e);
    free(points);
    return s;
}

static double suggest(struct dt_optimizer *o, struct dt_context *ctx, struct dt_observation *obs,
                      double *x, struct dt_error *e)
{
    double start = now();
    if (dt_optimizer_suggest(o, ctx, x, e) != 1)
        die(e);
    double took = now() - start;
    obs[ctx->nobs++] = (struct dt_observation){
        .x = x, .status = DT_STATUS_OK, .value = value_of(x), .cost = 1};
    return took;
}

int main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    size_t n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (n < 1 || n + WARM >= CANDIDATES) {
        fprintf(stderr, "usage: suggest_time N\n");
        return 2;
    }
    struct dt_space *s = make_space(&e);
    struct dt_optimizer *o = s ? dt_optimizer_new("bayes", s, 1, &e) : NULL;
    if (!o)
        die(&e);
    struct dt_observation *obs = dt_xcalloc(n + WARM + 1, sizeof(*obs));
    double *next = dt_xcalloc((WARM + 1) * PARAMS, sizeof(*next));
    struct dt_context ctx = {.space = s, .obs = obs, .nobs = n, .seed = 1, .grid_levels = 5};
    for (size_t i = 0; i < n; i++) {
        const double *x = s->points + i * (CANDIDATES / n) * PARAMS;
        obs[i] = (struct dt_observation){.x = x, .status = DT_STATUS_OK, .value = value_of(x), .cost = 1};
    }
    double cold = suggest(o, &ctx, obs, next, &e), warm = 0, worst = 0;
    for (int i = 1; i <= WARM; i++) {
        double took = suggest(o, &ctx, obs, next + i * PARAMS, &e);
        warm += took / WARM;
        worst = fmax(worst, took);
    }
    printf(
        "{\"n\": %zu, \"candidates\": %zu, \"cold_s\": %.9f, \"warm_s\": %.9f, \"worst_s\": %.9f, "
        "\"peak_mib\": %.1f}\n",
        n, s->npoints, cold, warm, worst, peak_mib());
    dt_optimizer_free(o);
    dt_space_free(s);
    free(obs);
    free(next);
    return 0;
}
