/* What the rules of the allocator share. */
#ifndef DT_ALLOCATOR_PRIVATE_H
#define DT_ALLOCATOR_PRIVATE_H

#include "allocator/allocator.h"

/* Times as fast that count as faster: more than noise. */
#define DT_HELPED 1.03

enum dt_load { DT_LOAD_UNKNOWN, DT_LOAD_IDLE, DT_LOAD_PARTLY, DT_LOAD_SATURATED };

/* How a role is loaded, by its CPUs or GPUs, whichever are busier. */
struct dt_role_load {
    enum dt_load load;
    double level; /* mean over the samples that count; NaN: not known */
    enum dt_resource resource; /* the busier of both, where samples say which; else CPUs */
};

/* One trial under examination. */
struct dt_case {
    const struct dt_allocator *a;
    const struct dt_space *s;
    const struct dt_running *t;
    const struct dt_stretch *now; /* the present one */
    struct dt_role_load ps, worker;
    const double *rows; /* what is allowed beside its hyperparameters */
    size_t nrows;
};

/* By the thresholds alone, for a level that is a mean over many samples. */
struct dt_role_load dt_load_of_level(const struct dt_allocator *a, double level);
/* "ps saturated (97 %), workers wait (41 %)". Caller frees. */
char *dt_loads_text(struct dt_role_load ps, struct dt_role_load worker);
/* Whether a value is as it was. What is as the user's script has it, is alike to all: nobody knows what it is. */
bool dt_case_alike(double from, double to);
/* Whether the trial was on x already. */
bool dt_case_visited(const struct dt_case *c, const double *x);
/* Whether saving so many seconds a step is worth a restart, by what is left to do; where so, *why (caller frees) has the
 * numbers. */
bool dt_case_worth(const struct dt_case *c, double saved, char **why);
/* The wish to be on x; takes over `why`. */
struct dt_wish dt_wish_for(const struct dt_case *c, const double *x, char *why);

/* The rules. A wish without x: stay. */
struct dt_wish dt_rule_thresholds(const struct dt_case *c);
struct dt_wish dt_rule_model(const struct dt_case *c);
struct dt_wish dt_rule_save(const struct dt_case *c);
/* Where the script left open on what nodes a role is, a step should not lead to lesser ones: drops such rows, returns
 * how many are left. */
size_t dt_nodes_keep(const struct dt_case *c, double *rows);
/* A saturated role to nodes that have more; for want of anything better. */
struct dt_wish dt_rule_nodes(const struct dt_case *c);
/* The same for memory, which is full at this level. */
struct dt_wish dt_rule_nodes_memory(const struct dt_case *c, const char *role, double level);

#endif
