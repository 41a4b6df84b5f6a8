#include "history/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a configuration means by not naming a parameter; NULL where nothing is meant. */
static struct json_object *implied(const char *name)
{
    if (strcmp(name, "ps") == 0)
        return json_object_new_int(0);
    return strcmp(name, "layout") == 0 ? json_object_new_string("packed") : NULL;
}

/* The configuration with the parameters of this space; NULL where it has others that matter. The
 * caller puts() the result. */
static struct json_object *translate(const struct dt_space *space, struct json_object *config)
{
    struct json_object *o = json_object_new_object();
    bool fits = json_object_is_type(config, json_type_object);
    if (fits) {
        json_object_object_foreach(config, key, value)
        {
            struct json_object *nothing = implied(key);
            if (dt_space_index(space, key) >= 0)
                json_object_object_add(o, key, json_object_get(value));
            else
                fits &= nothing && json_object_equal(nothing, value);
            json_object_put(nothing);
        }
    }
    for (size_t i = 0; fits && i < space->n; i++) {
        const char *name = space->params[i].name;
        struct json_object *value = NULL;
        if (!json_object_object_get_ex(o, name, NULL) && (value = implied(name)))
            json_object_object_add(o, name, value);
    }
    if (fits)
        return o;
    json_object_put(o);
    return NULL;
}

/* The configuration as a point of the space; false where it is none. */
static bool map_config(const struct dt_space *space, struct json_object *config, bool same,
                       double *x)
{
    struct json_object *o = translate(space, config);
    bool inside = o && dt_config_from_json(space, o, x, NULL) == 0;
    for (size_t i = 0; inside && i < space->n; i++) {
        if (!dt_space_active(space, x, i))
            continue;
        inside = isnan(x[i]) ? same && space->params[i].hyper
                             : dt_param_contains(&space->params[i], x[i]);
    }
    json_object_put(o);
    return inside;
}

static bool map_observation(const struct dt_space *space, struct json_object *o, bool same,
                            bool by_nodes, double *x, struct dt_observation *obs)
{
    const char *status = dt_json_str(o, "status", "");
    double seconds = dt_json_num(o, "duration_s", 0),
           nodes = by_nodes ? dt_json_num(o, "nodes", 1) : 1;
    int found = -1;
    for (int i = DT_STATUS_PENDING + 1; i < DT_STATUS_VOID; i++)
        if (strcmp(status, dt_status_names[i]) == 0)
            found = i;
    *obs = (struct dt_observation){.status = (enum dt_status)found,
                                   .value = dt_json_num(o, "value", NAN),
                                   .cost = seconds * nodes,
                                   .margin = dt_json_num(o, "margin", NAN)};
    bool valued = found >= 0 && found != DT_STATUS_FAILED;
    return found >= 0 && isfinite(valued ? obs->value : 0) &&
           map_config(space, dt_json_get(o, "config"), same, x);
}

/* Later measurements of a configuration point to its first. */
static void mark_again(const struct dt_past *p, const struct dt_past_study *study, size_t width)
{
    for (size_t i = study->first; i < study->first + study->n; i++) {
        for (size_t j = study->first; j < i && !p->obs[i].again; j++)
            if (dt_config_equal(p->x + i * width, p->x + j * width, width))
                p->obs[i].again = p->obs[j].again ? p->obs[j].again : j - study->first + 1;
    }
}

/* Where nothing ran, the script is rather to blame than the configurations. */
static bool any_ran(const struct dt_past *p, const struct dt_past_study *study)
{
    for (size_t i = study->first; i < study->first + study->n; i++)
        if (p->obs[i].status != DT_STATUS_FAILED)
            return true;
    return false;
}

void dt_past_add(struct dt_past *p, const struct dt_space *space, struct json_object *record,
                 bool same, bool by_nodes)
{
    struct json_object *list = dt_json_get(record, "observations");
    size_t n = dt_json_count(list);
    struct dt_past_study study = {
        .time = dt_json_num(record, "time", 0), .same = same, .first = p->nobs};
    p->obs = dt_xrealloc(p->obs, p->nobs + n + 1, sizeof(*p->obs));
    p->x = dt_xrealloc(p->x, (p->nobs + n) * space->n + 1, sizeof(double));
    for (size_t i = 0; i < n; i++)
        if (map_observation(space, dt_json_at(list, i), same, by_nodes, p->x + p->nobs * space->n,
                            &p->obs[p->nobs]))
            p->nobs++;
    for (size_t i = 0; i < p->nobs; i++) /* rows may have moved */
        p->obs[i].x = p->x + i * space->n;
    study.n = p->nobs - study.first;
    if (!any_ran(p, &study)) {
        p->nobs = study.first;
        return;
    }
    study.name = dt_xstrdup(dt_json_str(record, "study", "?"));
    p->studies = dt_xrealloc(p->studies, p->nstudies + 1, sizeof(*p->studies));
    p->studies[p->nstudies++] = study;
    mark_again(p, &study, space->n);
}

static bool same_task(const struct dt_workload *w, struct json_object *record)
{
    const char *signature = dt_json_str(record, "signature", ""),
               *task = signature + strcspn(signature, "-");
    return *task && strcmp(task + 1, w->task) == 0;
}

struct dt_past *dt_history_load_named(const char *dir, const struct dt_workload *w,
                                      const struct dt_strv *names, const struct dt_space *space,
                                      bool by_nodes, struct dt_error *e)
{
    struct dt_history h;
    if (dt_history_read(dir, NULL, true, &h, e) < 0)
        return NULL;
    struct dt_past *p = dt_xcalloc(1, sizeof(*p));
    int rc = 0;
    for (size_t i = 0; i < names->n && rc == 0; i++) {
        const char *name = names->v[i];
        struct json_object *record = dt_history_study(&h, name);
        if (!record && dt_starts_with(name, "dt-tune-"))
            record = dt_history_study(&h, name + strlen("dt-tune-"));
        if (!record)
            rc =
                dt_fail(e, "there is no study \"%s\" in %s; dt-tune history lists them", name, dir);
        else if (!same_task(w, record))
            rc = dt_fail(e,
                         "study %s was of another objective, target, quality or hyperparameters, "
                         "so its values say nothing here; leave it out",
                         name);
        else
            dt_past_add(p, space, record,
                        strcmp(dt_json_str(record, "signature", ""), w->signature) == 0, by_nodes);
    }
    dt_history_free(&h);
    if (rc == 0)
        return p;
    dt_past_free(p);
    return NULL;
}

struct dt_past *dt_history_load(const char *dir, const struct dt_workload *w, bool others,
                                const char *not_this, const struct dt_space *space, bool by_nodes,
                                struct dt_error *e)
{
    struct dt_history h;
    if (dt_history_read(dir, others ? NULL : w->signature, true, &h, e) < 0)
        return NULL;
    struct dt_past *p = dt_xcalloc(1, sizeof(*p));
    for (size_t i = 0; i < h.n; i++) {
        bool same = strcmp(dt_json_str(h.v[i], "signature", ""), w->signature) == 0;
        bool own = not_this && strcmp(dt_json_str(h.v[i], "dir", ""), not_this) == 0;
        if (!own && (same || (others && same_task(w, h.v[i]))))
            dt_past_add(p, space, h.v[i], same, by_nodes);
    }
    dt_history_free(&h);
    return p;
}

/* ---- as a study keeps it ---- */

static struct json_object *observation_json(const struct dt_space *space,
                                            const struct dt_observation *o)
{
    struct json_object *json = json_object_new_object();
    json_object_object_add(json, "config", dt_config_to_json(space, o->x));
    json_object_object_add(json, "status", json_object_new_string(dt_status_names[o->status]));
    if (isfinite(o->value))
        json_object_object_add(json, "value", dt_json_number(o->value));
    if (isfinite(o->margin))
        json_object_object_add(json, "margin", dt_json_number(o->margin));
    if (o->cost > 0)
        json_object_object_add(json, "duration_s", dt_json_number(o->cost));
    return json;
}

struct json_object *dt_past_to_json(const struct dt_past *p, const struct dt_space *space)
{
    struct json_object *all = json_object_new_array();
    for (size_t i = 0; i < p->nstudies && i < DT_PAST_STUDIES; i++) {
        const struct dt_past_study *s = &p->studies[i];
        struct json_object *one = json_object_new_object(), *list = json_object_new_array();
        for (size_t k = s->first; k < s->first + s->n; k++)
            json_object_array_add(list, observation_json(space, &p->obs[k]));
        json_object_object_add(one, "study", json_object_new_string(s->name));
        json_object_object_add(one, "time", dt_json_number(s->time));
        json_object_object_add(one, "same", json_object_new_boolean(s->same));
        json_object_object_add(one, "observations", list);
        json_object_array_add(all, one);
    }
    return all;
}

struct dt_past *dt_past_from_json(struct json_object *all, const struct dt_space *space)
{
    struct dt_past *p = dt_xcalloc(1, sizeof(*p));
    size_t n = dt_json_count(all);
    for (size_t i = 0; i < n; i++) {
        struct json_object *one = dt_json_at(all, i);
        dt_past_add(p, space, one, json_object_get_boolean(dt_json_get(one, "same")), false);
    }
    return p;
}

void dt_past_free(struct dt_past *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nstudies; i++)
        free(p->studies[i].name);
    free(p->studies);
    free(p->obs);
    free(p->x);
    free(p);
}
