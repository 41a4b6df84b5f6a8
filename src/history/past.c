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

static void add_study(struct dt_past *p, const struct dt_space *space, struct json_object *record,
                      bool same, bool by_nodes)
{
    struct json_object *list = dt_json_get(record, "observations");
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    struct dt_past_study study = {
        .time = dt_json_num(record, "time", 0), .same = same, .first = p->nobs};
    p->obs = dt_xrealloc(p->obs, p->nobs + n + 1, sizeof(*p->obs));
    p->x = dt_xrealloc(p->x, (p->nobs + n) * space->n + 1, sizeof(double));
    for (size_t i = 0; i < n; i++)
        if (map_observation(space, json_object_array_get_idx(list, i), same, by_nodes,
                            p->x + p->nobs * space->n, &p->obs[p->nobs]))
            p->nobs++;
    study.n = p->nobs - study.first;
    if (!study.n)
        return;
    study.name = dt_xstrdup(dt_json_str(record, "study", "?"));
    p->studies = dt_xrealloc(p->studies, p->nstudies + 1, sizeof(*p->studies));
    p->studies[p->nstudies++] = study;
    mark_again(p, &study, space->n);
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
        const char *signature = dt_json_str(h.v[i], "signature", ""),
                   *task = signature + strcspn(signature, "-");
        bool same = strcmp(signature, w->signature) == 0;
        bool own = not_this && strcmp(dt_json_str(h.v[i], "dir", ""), not_this) == 0;
        if (!own && (same || (others && *task && strcmp(task + 1, w->task) == 0)))
            add_study(p, space, h.v[i], same, by_nodes);
    }
    dt_history_free(&h);
    for (size_t i = 0; i < p->nobs; i++) /* the rows stay where they are from now on */
        p->obs[i].x = p->x + i * space->n;
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
