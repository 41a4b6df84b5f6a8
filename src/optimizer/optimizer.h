/* optimizer: which configuration to try next. The border that every search algorithm stands behind.
 *
 * A suggestion is a function of the context alone: space, observations, seed. So a study that is replayed from its
 * journal goes on exactly as the uninterrupted one. What an optimizer keeps between calls is only a cache. */
#ifndef DT_OPTIMIZER_H
#define DT_OPTIMIZER_H

#include "space/space.h"

enum dt_status {
    DT_STATUS_PENDING,  /* running; no value yet */
    DT_STATUS_OK,       /* value is the objective */
    DT_STATUS_FAILED,   /* the configuration is to blame; no value */
    DT_STATUS_CENSORED, /* value is a bound: the truth is no better */
    DT_STATUS_POOR,     /* value is the objective, but the quality is not what was asked for */
    DT_STATUS_PRUNED,   /* stopped early: value is what it had come to */
    DT_STATUS_VOID,     /* failed through no fault of the configuration: teaches nothing */
};
extern const char *const dt_status_names[];

struct dt_observation {
    const double *x; /* space->n values; borrowed */
    enum dt_status status;
    double value;    /* in the user's unit and direction */
    double cost;     /* what it took of the study's budget: seconds or node-seconds; 0: not known */
    double pace;     /* steady seconds a step of its work; 0: not known */
    size_t again;    /* measures a configuration again: 1 + the index of its first observation; 0: it does not */
    double margin;   /* of its quality; means something where the context has a quality; NaN: not known */
    bool part;       /* of a run that changed its configuration: it teaches, but the configuration was not tried as a
                        whole, so it is not recommended; nor is it tried again, for the next trial would leave it,
                        too; these stand behind all others */
};

/* What an earlier study observed. */
struct dt_past_study {
    char *name;
    double time;     /* when it ended, seconds since the epoch */
    bool same;       /* of the same workload; else another program of which the same was asked */
    size_t first, n; /* its observations */
};
struct dt_past {
    /* Study by study, the last first; of one study in the order of its trials. */
    struct dt_observation *obs;
    size_t nobs;
    double *x;                     /* nobs rows of space->n; obs[i].x points into it */
    struct dt_past_study *studies; /* those with observations */
    size_t nstudies;
};

struct dt_context {
    const struct dt_space *space;
    const struct dt_observation *obs; /* in order of creation, pending ones too */
    size_t nobs;
    bool maximize;
    uint64_t seed;
    size_t grid_levels; /* how many values a grid takes of a continuous parameter */
    bool quality;       /* what has a negative margin is no good */
    bool grows;         /* the objective grows with the fidelity, about in proportion, as a time does */
    bool conclude;      /* few trials are left: each at the highest fidelity */
    double enough;      /* an expected improvement, as a fraction, up to which nothing more is looked for */
    double budget_left; /* the share of the budget that is left; 0 where there is none */
    /* Earlier studies on this space, or NULL; an empty one is as good as none. Only a model learns
     * from them. */
    const struct dt_past *past;
};

struct dt_optimizer;
struct dt_optimizer_ops {
    const char *name;
    void *(*create)(const struct dt_space *space, uint64_t seed); /* the cache; may be NULL */
    void (*destroy)(void *cache);
    /* Puts the next configuration into x. 1: done; 0: nothing is left to try; -1: error. */
    int (*suggest)(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e);
    /* See dt_optimizer_promise(); NULL where there is no model. */
    double (*promise)(void *cache, const struct dt_context *ctx);
    /* See dt_optimizer_width(); NULL: any number. */
    size_t (*width)(const struct dt_context *ctx);
    /* See dt_optimizer_fastest(); NULL where paces are not looked at. */
    bool (*fastest)(const struct dt_context *ctx, double *x);
    /* See dt_optimizer_place(); NULL where hyperparameters do not come from outside. */
    bool (*place)(const struct dt_context *ctx, double *x);
};

/* By name: "bayes", "joint", "random", "sobol", "grid", and "external", which suggests nothing by itself. NULL, with an
 * error, where there is none. */
struct dt_optimizer *dt_optimizer_new(const char *name, const struct dt_space *space, uint64_t seed,
                                      struct dt_error *e);
int dt_optimizer_suggest(struct dt_optimizer *o, const struct dt_context *ctx, double *x,
                         struct dt_error *e);
/* The improvement, as a fraction of the best value, that is expected of the best configuration that was not
 * tried; 0 where the algorithm has no idea. */
double dt_optimizer_promise(struct dt_optimizer *o, const struct dt_context *ctx);
/* How many trials at once are of use: one that is asked for before others have ended does not learn from them. */
size_t dt_optimizer_width(struct dt_optimizer *o, const struct dt_context *ctx);
/* Replaces the DT configuration in x by the one that is expected to work fastest with its hyperparameters, tried or
 * not. False, and x as it was, where that is not known. */
bool dt_optimizer_fastest(struct dt_optimizer *o, const struct dt_context *ctx, double *x);
/* Gives hyperparameters that come from outside a DT configuration, both in x: at first one far from those that were
 * tried, then the one that most promises to be faster, or where none promises much the fastest, tried or not. False, and
 * x as it was, where no DT configuration is allowed beside them. */
bool dt_optimizer_place(struct dt_optimizer *o, const struct dt_context *ctx, double *x);
void dt_optimizer_free(struct dt_optimizer *o);

/* Puts into cost[i] what observation i's configuration costs at the highest fidelity, as far as the costs of all tell; 0
 * where they are not known. */
void dt_context_full_costs(const struct dt_context *ctx, double *cost);

/* The context with paces as values, which are to be small. Caller frees the observations. */
struct dt_context dt_context_paces(const struct dt_context *ctx, struct dt_observation **obs);

/* Whether a configuration was tried already, or is being tried. */
bool dt_context_tried(const struct dt_context *ctx, const double *x);

/* ---- perturb.c ---- */

/* Puts hyperparameters near those of `from` into x, with its DT configuration: a number is
 * multiplied by 1.2 or 0.8 (and rounded to four digits) within its domain and step, of listed values
 * a neighbour is taken, and each is drawn anew instead with the chance `resample`. What the space
 * does not allow is not returned; where nothing else was found x is `from`. The same stream gives
 * the same. */
void dt_perturb(const struct dt_space *s, const double *from, double resample, uint64_t stream,
                double *x);

/* ---- recommend.c ---- */

/* The first observation of the configuration with the best mean of its measurements; -1: none has a
 * value. */
int dt_context_best(const struct dt_context *ctx);
/* The mean of all measurements of observation i's configuration, in the user's direction; returns how
 * many there are (0: *mean is NaN). */
int dt_context_mean(const struct dt_context *ctx, size_t i, double *mean);
/* The first observation of the configuration that should be measured again before one is recommended;
 * -1: none needs it, or what is under way should be waited for. */
int dt_context_repeat(const struct dt_context *ctx);

#endif
