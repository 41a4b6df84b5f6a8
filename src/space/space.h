/* space: parameters with domains, constraints over them, and the configurations that are allowed.
 *
 * A configuration is a vector of doubles, one a parameter: the number itself, for a text choice the index of
 * its label. NaN stands for "as the user's script has it" (only the job as submitted has such) and for an inactive
 * parameter: one whose condition does not hold. Of configurations that differ only in what is inactive there is one. */
#ifndef DT_SPACE_H
#define DT_SPACE_H

#include "util/util.h"

enum dt_param_kind { DT_PARAM_INT, DT_PARAM_FLOAT, DT_PARAM_LABEL };

struct dt_param {
    char *name;
    enum dt_param_kind kind;
    bool hyper;       /* a hyperparameter; else part of the DT configuration */
    bool log;         /* searched on a logarithmic scale */
    bool natural;     /* no values yet: "auto", those that the nodes suggest */
    bool fidelity;    /* how much of the work a trial does: the result is wanted for the highest value */
    double low, high; /* bounds, inclusive */
    double step;      /* grid from low; 0: every double in between (float only) */
    /* An explicit list of values, in the user's order; then low, high and step are unused. */
    size_t nvalues;
    double *values; /* the number; for DT_PARAM_LABEL its index */
    char **labels;  /* how the user wrote it ("2G", "adam"); NULL for plain numbers */
    char *when;       /* the condition under which it has a value at all; NULL: always */
    char *when_place; /* where that stands, for messages; or NULL */
    char *place;      /* where a kind of nodes stands, likewise; its words are checked when the cluster is known */
};

void dt_param_free(struct dt_param *p); /* what it points to, not itself */
void dt_param_copy(struct dt_param *to, const struct dt_param *from);
/* Number of values; INFINITY for a continuous one. */
double dt_param_count(const struct dt_param *p);
/* Value number i (0-based) of a finite domain. */
double dt_param_nth(const struct dt_param *p, size_t i);
/* The value nearest to the point u of [0,1] on the parameter's own scale. */
double dt_param_at(const struct dt_param *p, double u);
bool dt_param_contains(const struct dt_param *p, double x);
/* The value that a text stands for: a label, a number, a size; must be in the domain. */
int dt_param_parse(const struct dt_param *p, const char *text, double *x, struct dt_error *e);
/* The value as text. Caller frees. */
char *dt_param_text(const struct dt_param *p, double x);

/* Why a configuration cannot run, beyond constraints: NULL if it can; else a reason that is the same text for
 * the same kind of exclusion, so that exclusions can be counted. `arg` is the filter's own. */
struct dt_space;
typedef const char *dt_space_filter(void *arg, const struct dt_space *s, const double *x);

struct dt_exclusion {
    char *reason;
    size_t count;
};

struct dt_space {
    struct dt_param *params;
    size_t n;
    struct dt_conditions *conditions;
    struct dt_constraint **constraints;
    size_t nconstraints;
    dt_space_filter *filter;
    void *filter_arg;
    double product;      /* size before constraints, an upper bound if not enumerated; INFINITY where a parameter is
                            continuous */
    bool enumerated;     /* points[] holds every allowed configuration */
    double *points;      /* npoints rows of n */
    size_t npoints;
    size_t ndt; /* not enumerated: DT configurations that may be possible; 0: not counted */
    struct dt_exclusion *exclusions; /* of configurations, or of DT configurations */
    size_t nexclusions;
};

/* Largest product that is enumerated. */
#define DT_SPACE_ENUMERATED 100000

/* A named constant that constraints may use ("cluster_nodes"). */
struct dt_fact {
    const char *name;
    double value;
};

/* Builds the space: copies the parameters, compiles conditions and constraints (muParser expressions over parameters,
 * facts and quoted labels), enumerates where that is possible. `candidates` is an optional list of ncandidates
 * rows which alone are allowed; equal ones count once. An empty space is an error that says what excluded how many. */
struct dt_space *dt_space_new(const struct dt_param *params, size_t n, const struct dt_strv *constraints,
                              const struct dt_fact *facts, size_t nfacts, dt_space_filter *filter,
                              void *filter_arg, const double *candidates, size_t ncandidates,
                              struct dt_error *e);
void dt_space_free(struct dt_space *s);

/* Whether x is allowed by constraints and filter; the reason (borrowed) if not. Domains are not checked. */
bool dt_space_allows(const struct dt_space *s, const double *x, const char **why);
/* Whether x may be tried: all that is active in it and nothing else has a value, and it is in points[], or allowed where
 * there are none. */
bool dt_space_has(const struct dt_space *s, const double *x);
/* Whether parameter i takes part in x, where what its condition mentions is as dt_space_settle() leaves it. */
bool dt_space_active(const struct dt_space *s, const double *x, size_t i);
/* Makes every inactive parameter NaN, whatever it was. */
void dt_space_settle(const struct dt_space *s, double *x);
/* Index of the parameter, or -1. */
int dt_space_index(const struct dt_space *s, const char *name);
/* x's value for a parameter, or the fallback where there is no such parameter or it is NaN. */
double dt_space_value(const struct dt_space *s, const double *x, const char *name, double fallback);
/* x's label for a parameter of labels, or NULL where there is no such parameter or it is NaN. Borrowed. */
const char *dt_space_label(const struct dt_space *s, const double *x, const char *name);
/* Equality of two configurations of n values, NaN equal to NaN. */
bool dt_config_equal(const double *a, const double *b, size_t n);
bool dt_config_same_hyper(const struct dt_space *s, const double *a, const double *b);
/* Every allowed DT configuration beside the hyperparameters of x, at most `max`: *n rows of s->n. Caller frees. */
double *dt_space_beside(const struct dt_space *s, const double *x, size_t max, size_t *n);

/* {"ps":2,"opt":"adam"}; NaN is null, what is inactive is left out. */
struct json_object *dt_config_to_json(const struct dt_space *s, const double *x);
/* Every active parameter must be there and nothing else; null is NaN. Domains are not checked, labels are. */
int dt_config_from_json(const struct dt_space *s, struct json_object *o, double *x, struct dt_error *e);
/* The same, but an active parameter that is not there is as in `rest`. */
int dt_config_complete(const struct dt_space *s, struct json_object *o, const double *rest, double *x,
                       struct dt_error *e);
/* "ps=2 workers=4 lr=0.01". Caller frees. */
char *dt_config_text(const struct dt_space *s, const double *x);
/* "ps=0-4 workers=1-8 lr=1e-04..0.1 (log)", one line a parameter. Caller frees. */
char *dt_space_describe(const struct dt_space *s);

/* ---- the fidelity (fidelity.c) ---- */

/* The parameter that is the fidelity, all of whose values are above 0; -1: there is none. */
int dt_space_fidelity(const struct dt_space *s);
/* The highest value of a parameter of numbers. */
double dt_param_highest(const struct dt_param *p);
/* Whether x does all of the work: is at the highest fidelity, or there is none. */
bool dt_space_is_full(const struct dt_space *s, const double *x);
/* Whether a and b are the same but for the fidelity. */
bool dt_space_same_work(const struct dt_space *s, const double *a, const double *b);
/* Puts x at the highest fidelity, where there is one. */
void dt_space_fill(const struct dt_space *s, double *x);
/* The lower values that a fidelity may be given, the lowest first: all that are listed, else halves, quarters, ... of the
 * highest. Returns how many; *values is the caller's. */
size_t dt_param_lower(const struct dt_param *p, double **values);

/* ---- constraints (constraint.c) ---- */

struct dt_constraint;
/* Compiles one expression of muParser's language (+ - * / ^ == != < <= && || ?: min() sqrt() ...) with % for the
 * remainder and ! for not. Every parameter is a variable, labels in quotes are numbers of their own. */
struct dt_constraint *dt_constraint_new(const char *text, const struct dt_param *params, size_t n,
                                        const struct dt_fact *facts, size_t nfacts, struct dt_error *e);
/* True where it holds. A parameter that is NaN, and a result that is NaN, count as holding. */
bool dt_constraint_holds(struct dt_constraint *c, const double *x);
/* Whether parameter i stands in it. */
bool dt_constraint_mentions(const struct dt_constraint *c, size_t i);
const char *dt_constraint_text(const struct dt_constraint *c);
void dt_constraint_free(struct dt_constraint *c);

/* A condition is the same, but does not hold where a parameter is NaN, or the result. */
struct dt_constraint *dt_condition_new(const char *text, const struct dt_param *params, size_t n,
                                       const struct dt_fact *facts, size_t nfacts, struct dt_error *e);
bool dt_condition_holds(struct dt_constraint *c, const double *x);

/* ---- what is active (condition.c) ---- */

struct dt_conditions {
    const struct dt_param *params; /* borrowed */
    size_t n;
    struct dt_constraint **when; /* of each parameter; NULL: always active */
    size_t *order;               /* the parameters' own, but each behind all that its condition mentions */
    bool *mentioned;             /* by the condition of another */
};

/* Compiles the conditions of the parameters, which must outlive it. One that mentions itself, depends on itself by way
 * of others, or holds for no values at all, is an error; where facts decide it may never hold here. Errors name the
 * place. */
struct dt_conditions *dt_conditions_new(const struct dt_param *params, size_t n, const struct dt_fact *facts,
                                        size_t nfacts, struct dt_error *e);
void dt_conditions_free(struct dt_conditions *c);
/* As dt_space_active() and dt_space_settle(). */
bool dt_conditions_active(const struct dt_conditions *c, const double *x, size_t i);
void dt_conditions_settle(const struct dt_conditions *c, double *x);

/* A walk over all combinations of values, each distinct one once; the last parameter turns fastest. Set the upper part,
 * call dt_walk_start(), read x until dt_walk_next() says that there are no more, call dt_walk_end(). */
struct dt_walk {
    const struct dt_conditions *conditions;
    /* How many values a parameter takes, at least 1, and which; NULL: all, the lowest for those of a continuous one. */
    size_t (*count)(const struct dt_param *p, const void *arg);
    double (*value)(const struct dt_param *p, size_t i, const void *arg);
    const void *arg;
    const bool *among; /* only these parameters, and what their conditions mention is among them; NULL: all */

    double *x; /* inactive and other parameters are NaN */
    size_t *digit;
};
void dt_walk_start(struct dt_walk *w);
bool dt_walk_next(struct dt_walk *w);
void dt_walk_end(struct dt_walk *w);

#endif
