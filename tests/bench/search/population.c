/* Population-based training against random search, the whole tuner on a training that runs here:
 * population RULE SEED POPULATION prints one JSON object. RULE is pbt or none.
 *
 * The training: logistic regression by stochastic gradients, DIMENSIONS inputs of very different
 * scales, noisy labels, one sample an update; a step is UPDATES of them. Hyperparameters: learning
 * rate and momentum. The objective is the loss on samples that were not trained with. A step takes
 * about a second of a virtual clock, a little more or less for each trial. */
#include "backend/backend.h"
#include "optimizer/algorithms.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIMENSIONS = 20,
    SAMPLES = 4000,
    TRAINED = 2000,
    STEPS = 60,
    UPDATES = 20,
    INTERVAL = 5,
    MOST = 2000
};

struct model {
    double w[DIMENSIONS], v[DIMENSIONS];
    int step;
};

struct run {
    struct model m;
    double lr, momentum, next; /* when its next step is done */
    bool started, over;
    gsl_rng *rng;
};

struct training {
    double x[SAMPLES][DIMENSIONS], y[SAMPLES];
    struct run runs[MOST + 1]; /* by trial */
    double clock;
    long steps; /* of all trials together */
};

/* ---- the training ---- */

static void make_data(struct training *t, uint64_t seed)
{
    gsl_rng *rng = dt_rng_new(1000 + seed);
    double truth[DIMENSIONS];
    for (int k = 0; k < DIMENSIONS; k++)
        truth[k] = gsl_ran_gaussian(rng, 1);
    for (int i = 0; i < SAMPLES; i++) {
        double sum = 0;
        for (int k = 0; k < DIMENSIONS; k++) {
            t->x[i][k] = gsl_ran_gaussian(rng, pow(0.8, k));
            sum += truth[k] * t->x[i][k];
        }
        t->y[i] = gsl_rng_uniform(rng) < 1 / (1 + exp(-sum)) ? 1 : 0;
    }
    gsl_rng_free(rng);
}

static double predict(const struct training *t, const struct model *m, int i)
{
    double sum = 0;
    for (int k = 0; k < DIMENSIONS; k++)
        sum += m->w[k] * t->x[i][k];
    return 1 / (1 + exp(-sum));
}

static void train(struct training *t, struct run *r)
{
    for (int u = 0; u < UPDATES; u++) {
        int i = (int)gsl_rng_uniform_int(r->rng, TRAINED);
        double error = predict(t, &r->m, i) - t->y[i];
        for (int k = 0; k < DIMENSIONS; k++) {
            r->m.v[k] = r->momentum * r->m.v[k] - r->lr * error * t->x[i][k];
            r->m.w[k] += r->m.v[k];
        }
    }
    r->m.step++;
    t->steps++;
}

static double loss(const struct training *t, const struct model *m)
{
    double sum = 0;
    for (int i = TRAINED; i < SAMPLES; i++) {
        double p = predict(t, m, i);
        sum -= log(fmax(t->y[i] > 0 ? p : 1 - p, 1e-12));
    }
    return sum / (SAMPLES - TRAINED);
}

/* ---- as a backend ---- */

static double now(void *b)
{
    return ((struct training *)b)->clock;
}

static int submit(void *b, const struct dt_study *s, const struct dt_trial *t, struct dt_event *ev,
                  struct dt_error *e)
{
    struct training *all = b;
    struct run *r = &all->runs[t->id];
    (void)e;
    *ev = (struct dt_event)DT_EVENT(DT_EVENT_SUBMITTED);
    ev->t = all->clock;
    ev->trial = t->id;
    ev->run = t->run;
    ev->job = (uint32_t)t->id;
    if (t->parent)
        r->m = all->runs[t->parent].m;
    r->lr = dt_space_value(s->space, t->x, "lr", NAN);
    r->momentum = dt_space_value(s->space, t->x, "momentum", NAN);
    r->rng = dt_rng_new(s->spec->seed + 7919u * (uint64_t)t->id);
    r->next = all->clock;
    return 0;
}

static int cancel(void *b, const struct dt_trial *t, struct dt_error *e)
{
    (void)e;
    ((struct training *)b)->runs[t->id].over = true;
    return 0;
}

static struct dt_event *add(struct dt_event **events, size_t *n, enum dt_event_kind kind,
                            const struct dt_trial *t, double when)
{
    *events = dt_xrealloc(*events, *n + 1, sizeof(**events));
    struct dt_event *ev = &(*events)[(*n)++];
    *ev = (struct dt_event)DT_EVENT(kind);
    ev->trial = t->id;
    ev->run = t->run;
    ev->t = when;
    return ev;
}

/* What happens next to one trial. */
static void advance(struct training *all, const struct dt_study *s, const struct dt_trial *t,
                    struct dt_event **events, size_t *n)
{
    struct run *r = &all->runs[t->id];
    all->clock = fmax(all->clock, r->next);
    r->next = all->clock + 1 + 0.02 * (t->id % 5);
    if (!r->started) {
        r->started = true;
        add(events, n, DT_EVENT_STARTED, t, all->clock)->wait_s = 0;
        return;
    }
    if (r->over || r->m.step == STEPS) {
        struct dt_event *ev = add(events, n, DT_EVENT_ENDED, t, all->clock);
        ev->cause = r->over ? DT_CAUSE_CANCELLED : DT_CAUSE_OK;
        ev->run_s = 1;
        return;
    }
    train(all, r);
    struct dt_event *ev = add(events, n, DT_EVENT_METRIC, t, all->clock);
    ev->text = dt_xstrdup(s->spec->metric);
    ev->value = loss(all, &r->m);
    ev->step = r->m.step;
}

static int wait_for(void *b, const struct dt_study *s, double until, struct dt_event **events,
                    size_t *n, struct dt_error *e)
{
    struct training *all = b;
    const struct dt_trial *first = NULL;
    (void)until;
    for (size_t i = 0; i < s->n; i++)
        if (dt_trial_live(&s->trials[i]) &&
            (!first || all->runs[s->trials[i].id].next < all->runs[first->id].next))
            first = &s->trials[i];
    if (!first)
        return dt_fail(e, "nothing runs");
    advance(all, s, first, events, n);
    return 0;
}

static int find(void *b, const struct dt_trial *t, uint32_t *job, struct dt_error *e)
{
    (void)b;
    (void)t;
    (void)job;
    (void)e;
    return 0;
}

static int sweep(void *b, struct dt_error *e)
{
    (void)b;
    (void)e;
    return 0;
}

static void destroy(void *b)
{
    struct training *all = b;
    for (int i = 0; i <= MOST; i++)
        if (all->runs[i].rng)
            gsl_rng_free(all->runs[i].rng);
    free(all);
}

static const struct dt_backend_ops ops = {
    .name = "training",
    .now = now,
    .submit = submit,
    .cancel = cancel,
    .wait = wait_for,
    .find = find,
    .sweep = sweep,
    .destroy = destroy,
};

/* ---- a study ---- */

static char *spec_text(const char *rule, unsigned long seed, unsigned long population)
{
    bool pbt = strcmp(rule, "pbt") == 0;
    return dt_xasprintf("{\"hyperparameters\": {\"lr\": {\"type\": \"float\", \"low\": 0.0001, "
                        "\"high\": 1, \"log\": true}, "
                        "\"momentum\": {\"type\": \"float\", \"low\": 0, \"high\": 0.95}}, "
                        "\"objective\": {\"metric\": \"loss\", "
                        "\"goal\": \"minimize\"}, \"search\": {\"algorithm\": \"random\", "
                        "\"seed\": %lu, \"parallel\": %lu, "
                        "\"repeats\": 0, \"min_configs\": %d, \"max_configs\": %lu, "
                        "\"early_stop\": {\"rule\": \"%s\", \"interval\": "
                        "%d, \"max_step\": %d}}}",
                        seed, population, MOST, pbt ? MOST : population, rule, INTERVAL, STEPS);
}

int main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    static const volatile int stop;
    if (argc != 4) {
        fprintf(stderr, "usage: population pbt|none SEED POPULATION\n");
        return 2;
    }
    unsigned long seed = strtoul(argv[2], NULL, 10), population = strtoul(argv[3], NULL, 10);
    char *text = spec_text(argv[1], seed, population);
    struct json_object *json = dt_json_parse(text, "spec", &e);
    struct dt_spec *spec = json ? dt_spec_parse(json, text, "spec", &e) : NULL;
    struct dt_space *space = spec ? dt_space_new(spec->params, spec->nparams, &spec->constraints,
                                                 NULL, 0, NULL, NULL, NULL, 0, &e)
                                  : NULL;
    struct dt_study *s = space ? dt_study_new(spec, space, NULL, &e) : NULL;
    struct training *all = dt_xcalloc(1, sizeof(*all));
    struct dt_backend b = {&ops, all};
    make_data(all, seed);
    if (!s || dt_study_run(s, &b, NULL, NULL, NULL, &stop, &e) < 0) {
        fprintf(stderr, "population: %s\n", e.text);
        return 1;
    }
    const struct dt_trial *best = dt_study_best(s);
    size_t stages;
    free(dt_study_schedule(s, best, &stages));
    printf(
        "{\"rule\": \"%s\", \"seed\": %lu, \"population\": %lu, \"trials\": %zu, \"steps\": %ld, "
        "\"loss\": %.6f, \"stages\": %zu}\n",
        argv[1], seed, population, s->n, all->steps, best->value, stages);
    destroy(all);
    dt_study_free(s);
    dt_space_free(space);
    dt_spec_free(spec);
    json_object_put(json);
    free(text);
    return 0;
}
