/* Earlier studies for dt-tune simulate: what each would have tried on its own rows of the table. */
#include "backend/backend.h"
#include "tools/simulate.h"
#include "tuner/tuner.h"

#include <math.h>
#include <stdlib.h>

#define TRIALS 20

static struct json_object *observation(const struct dt_study *s, const struct dt_trial *t)
{
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "config", dt_config_to_json(s->space, t->x));
    json_object_object_add(o, "status", json_object_new_string(dt_status_names[t->status]));
    if (isfinite(t->value))
        json_object_object_add(o, "value", dt_json_number(t->value));
    if (isfinite(dt_trial_margin(s, t)))
        json_object_object_add(o, "margin", dt_json_number(dt_trial_margin(s, t)));
    return o;
}

/* The study as a record of the history. NULL on errors. */
static struct json_object *run(const struct rehearsal *r, const struct dt_spec *spec,
                               const struct dt_space *space, struct dt_error *e)
{
    static const volatile int stop;
    struct dt_backend *b = dt_backend_replay(spec, space, r->table, r->noise, r->failures, e);
    struct dt_study *s = b ? dt_study_new(spec, space, NULL, e) : NULL;
    struct json_object *record = NULL, *list = json_object_new_array();
    int rc = s ? dt_study_run(s, b, NULL, NULL, NULL, &stop, e) : -1;
    for (size_t i = 0; rc == 0 && i < s->n; i++)
        json_object_array_add(list, observation(s, &s->trials[i]));
    if (rc == 0) {
        record = json_object_new_object();
        json_object_object_add(record, "study", json_object_new_string(r->spec));
        json_object_object_add(record, "observations", json_object_get(list));
    }
    json_object_put(list);
    dt_study_free(s);
    dt_backend_free(b);
    return record;
}

int rehearse(const struct rehearsal *r, const struct dt_space *present, struct dt_past *p,
             struct dt_error *e)
{
    struct dt_spec *spec = dt_spec_read(r->spec, e);
    struct dt_job any = {0};
    bool usable =
        spec && dt_natural_fill(spec, &any, NULL, e) == 0 && dt_replay_adopt(spec, e) == 0;
    struct dt_space *space = usable ? replay_space(spec, r->spec, r->table, NULL, e) : NULL;
    struct json_object *record = NULL;
    if (space) {
        spec->seed = r->seed;
        spec->max_configs = spec->min_configs = TRIALS;
        record = run(r, spec, space, e);
    }
    if (record)
        dt_past_add(p, present, record, true, false);
    int rc = record ? 0 : dt_fail_at(e, "--past=%s", r->spec);
    json_object_put(record);
    dt_space_free(space);
    dt_spec_free(spec);
    return rc;
}
