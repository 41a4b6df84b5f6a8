/* Whether and how running trials are re-allocated: the sections "reallocate" and "checkpoint". */
#include "spec/spec_private.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int parse_rule(struct dt_allocator *a, const struct dt_place *p, const char *name,
                      struct dt_error *e)
{
    static const char *const rules[] = {"none", "thresholds", "model", "save"};
    for (size_t i = 0; i < COUNT(rules); i++) {
        if (strcmp(name, rules[i]) == 0) {
            a->rule = (enum dt_allocate_rule)i;
            return 0;
        }
    }
    const char *near = dt_nearest(name, rules, COUNT(rules));
    return dt_spec_fail(p, e, "\"%s\" is not a rule; %s%s", name,
                        near ? "did you mean " : "there are none, thresholds, model and ",
                        near ? near : "save");
}

static int parse_keys(struct dt_reallocate *r, const struct dt_place *p, struct json_object *o,
                      struct dt_error *e)
{
    static const char *const keys[] = {"rule",         "high",        "low",
                                       "high_samples", "low_samples", "max_per_trial",
                                       "cooldown_s",   "work",        "in_place"};
    struct dt_place q = dt_spec_under(p, "rule"), in_place = dt_spec_under(p, "in_place");
    struct dt_allocator *a = &r->allocator;
    char *rule = NULL;
    double high = 100 * a->high, low = 100 * a->low;
    struct json_object *place = dt_json_get(o, "in_place");
    if (dt_spec_check_keys(p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_number(p, o, "high", "a number of per cent", &high, e) < 0 ||
        dt_spec_get_number(p, o, "low", "a number of per cent", &low, e) < 0 ||
        dt_spec_get_size(p, o, "high_samples", 1, &a->high_samples, e) < 0 ||
        dt_spec_get_size(p, o, "low_samples", 1, &a->low_samples, e) < 0 ||
        dt_spec_get_size(p, o, "max_per_trial", 1, &r->most, e) < 0 ||
        dt_spec_get_number(p, o, "cooldown_s", "a number of seconds", &r->cooldown, e) < 0 ||
        dt_spec_get_number(p, o, "work", "a number of steps", &r->work, e) < 0 ||
        (place && dt_spec_want(&in_place, place, json_type_boolean, "true or false", e) < 0) ||
        dt_spec_get_string(p, o, "rule", &rule, e) < 0)
        return -1;
    r->in_place = dt_json_bool(o, "in_place", false);
    int known = parse_rule(a, &q, rule ? rule : "model", e);
    free(rule);
    if (known < 0)
        return -1;
    if (!(low >= 0 && low < high && high <= 100))
        return dt_spec_fail(p, e,
                            "\"low\" must be below \"high\", both between 0 and 100 per cent");
    if (a->high_samples > DT_USAGE_WINDOW || a->low_samples > DT_USAGE_WINDOW)
        return dt_spec_fail(p, e, "no more than %d samples are looked at", DT_USAGE_WINDOW);
    if (!(r->cooldown >= 0) || !(r->work >= 0))
        return dt_spec_fail(p, e, "neither \"cooldown_s\" nor \"work\" may be below 0");
    a->high = high / 100;
    a->low = low / 100;
    return 0;
}

/* "model", or {"rule": "model", "high": 90, ...} */
int dt_spec_parse_reallocate(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                             struct dt_error *e)
{
    struct dt_place p = dt_spec_under(top, "reallocate");
    struct dt_reallocate *r = &s->reallocate;
    bool brief = json_object_is_type(o, json_type_string);
    if (!o)
        return 0;
    if ((brief ? parse_rule(&r->allocator, &p, json_object_get_string(o), e)
               : parse_keys(r, &p, o, e)) < 0)
        return -1;
    if (r->allocator.rule != DT_ALLOCATE_NONE && !(s->monitor_period > 0))
        return dt_spec_fail(&p, e,
                            "it needs to know what the tasks use; leave \"monitor\": false out");
    if (r->allocator.rule != DT_ALLOCATE_NONE && s->pruner.rule == DT_PRUNE_PBT)
        return dt_spec_fail(&p, e,
                            "a population (pbt) keeps its DT configurations; leave one of both out");
    return 0;
}

static int parse_signal(struct dt_checkpoint *c, const struct dt_place *p, struct json_object *o,
                        struct dt_error *e)
{
    static const char *const names[] = {"USR1", "USR2", "TERM", "INT", "HUP"};
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
    struct dt_place q = dt_spec_under(p, "signal");
    char *name = NULL;
    int found = -1;
    if (dt_spec_get_string(p, o, "signal", &name, e) < 0)
        return -1;
    for (int i = 0; name && i < (int)COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            found = i;
    int rc = !name || found >= 0
                 ? 0
                 : dt_spec_fail(&q, e,
                                "\"%s\" is not a signal for this; there are USR1, USR2, TERM, "
                                "INT and HUP",
                                name);
    c->signal = found >= 0 ? numbers[found] : c->signal;
    free(name);
    return rc;
}

/* {"signal": "USR1", "grace_s": 60, "exit_code": 143} */
int dt_spec_parse_checkpoint(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                             struct dt_error *e)
{
    static const char *const keys[] = {"signal", "grace_s", "exit_code"};
    struct dt_place p = dt_spec_under(top, "checkpoint"), q = dt_spec_under(&p, "exit_code");
    struct dt_checkpoint *c = &s->checkpoint;
    size_t code = (size_t)c->exit_code;
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 || parse_signal(c, &p, o, e) < 0 ||
        dt_spec_get_number(&p, o, "grace_s", "a number of seconds", &c->grace, e) < 0 ||
        dt_spec_get_size(&p, o, "exit_code", 1, &code, e) < 0)
        return -1;
    if (code > 255)
        return dt_spec_fail(&q, e, "a program's exit code is at most 255");
    if (!(c->grace > 0))
        return dt_spec_fail(&p, e, "\"grace_s\" must be above 0");
    c->exit_code = (int)code;
    return 0;
}
