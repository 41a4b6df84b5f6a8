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
    DT_STATUS_VOID,     /* failed through no fault of the configuration: teaches nothing */
};
extern const char *const dt_status_names[];

struct dt_observation {
    const double *x; /* space->n values; borrowed */
    enum dt_status status;
    double value;    /* in the user's unit and direction */
    double duration; /* seconds; 0 while pending */
};

struct dt_context {
    const struct dt_space *space;
    const struct dt_observation *obs; /* in order of creation, pending ones too */
    size_t nobs;
    bool maximize;
    uint64_t seed;
    size_t grid_levels; /* how many values a grid takes of a continuous parameter */
};

struct dt_optimizer;
struct dt_optimizer_ops {
    const char *name;
    void *(*create)(const struct dt_space *space, uint64_t seed); /* the cache; may be NULL */
    void (*destroy)(void *cache);
    /* Puts the next configuration into x. 1: done; 0: nothing is left to try; -1: error. */
    int (*suggest)(void *cache, const struct dt_context *ctx, double *x, struct dt_error *e);
};

/* By name: "bayes", "random", "sobol", "grid". NULL, with an error, where there is none. */
struct dt_optimizer *dt_optimizer_new(const char *name, const struct dt_space *space, uint64_t seed,
                                      struct dt_error *e);
int dt_optimizer_suggest(struct dt_optimizer *o, const struct dt_context *ctx, double *x,
                         struct dt_error *e);
void dt_optimizer_free(struct dt_optimizer *o);

/* Whether a configuration was tried already, or is being tried. */
bool dt_context_tried(const struct dt_context *ctx, const double *x);
/* The best finished observation, or -1. */
int dt_context_best(const struct dt_context *ctx);

#endif
