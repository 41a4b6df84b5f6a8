#include "space/system_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- to JSON ---- */

static struct json_object *kind_to_json(const struct dt_node_kind *k)
{
    struct json_object *o = json_object_new_object(), *groups = json_object_new_array();
    for (size_t i = 0; i < k->ngroups; i++) {
        const struct dt_node_group *g = &k->groups[i];
        struct json_object *group = json_object_new_object();
        dt_put_text(group, "state", g->state);
        dt_put_text(group, "names", g->names);
        dt_put_places(group, &g->places);
        dt_put_flag(group, "usable", g->usable);
        json_object_array_add(groups, group);
    }
    dt_put_class(o, &k->size);
    dt_put_text(o, "partitions", k->partitions);
    json_object_object_add(o, "nodes", groups);
    return o;
}

static struct json_object *partition_to_json(const struct dt_partition *p)
{
    struct json_object *o = json_object_new_object();
    dt_put_text(o, "name", p->name);
    dt_put_text(o, "state", p->state);
    dt_put_flag(o, "preset", p->preset);
    dt_put_partition_limits(o, &p->limits);
    return o;
}

static struct json_object *switch_to_json(const struct dt_switch *w)
{
    struct json_object *o = json_object_new_object();
    dt_put_text(o, "name", w->name);
    json_object_object_add(o, "level", json_object_new_int64((int64_t)w->level));
    dt_put_text(o, "nodes", w->nodes);
    dt_put_text(o, "switches", w->switches);
    return o;
}

struct json_object *dt_system_to_json(const struct dt_system *s)
{
    struct json_object *o = json_object_new_object(), *list = json_object_new_array();
    json_object_object_add(o, "version", json_object_new_int(DT_SYSTEM_VERSION));
    dt_put_text(o, "cluster", s->name);
    dt_put_text(o, "slurm", s->version);
    json_object_object_add(o, "backfill", json_object_new_boolean(s->backfill));
    dt_put_scheduling(o, &s->scheduling);
    for (size_t i = 0; i < s->nkinds; i++)
        json_object_array_add(list, kind_to_json(&s->kinds[i]));
    json_object_object_add(o, "kinds", list);
    list = json_object_new_array();
    for (size_t i = 0; i < s->npartitions; i++)
        json_object_array_add(list, partition_to_json(&s->partitions[i]));
    json_object_object_add(o, "partitions", list);
    list = json_object_new_array();
    for (size_t i = 0; i < s->nswitches; i++)
        json_object_array_add(list, switch_to_json(&s->switches[i]));
    json_object_object_add(o, "switches", list);
    dt_put_amounts(o, "licenses", &s->licenses);
    dt_put_limits(o, s->limits, s->nlimits);
    return o;
}

/* ---- from JSON ---- */

static void need_text(struct dt_fields *f, const char *key, char **out)
{
    dt_fields_text(f, key, out);
    if (!f->failed && (!*out || !**out))
        dt_fields_fail(f, key, "a text is needed here");
}

static void take_group(struct dt_fields *f, struct dt_node_group *g)
{
    struct dt_strv names = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    need_text(f, "state", &g->state);
    need_text(f, "names", &g->names);
    dt_fields_bool(f, "usable", &g->usable);
    if (!f->failed && dt_hostlist_expand(g->names, &names, &e) < 0)
        dt_fields_fail(f, "names", "%s", e.text);
    g->count = names.n;
    dt_take_places(f, &g->places, g->count);
    dt_error_clear(&e);
    dt_strv_free(&names);
}

static void take_kind(struct dt_fields *f, struct dt_node_kind *k)
{
    k->size.cpus = 1;
    dt_take_class(f, &k->size);
    need_text(f, "partitions", &k->partitions);
    size_t n = dt_fields_array(f, "nodes");
    k->groups = dt_xcalloc(n, sizeof(*k->groups));
    while (k->ngroups < n && !f->failed) {
        struct dt_node_group *g = &k->groups[k->ngroups];
        struct dt_fields one = dt_fields_element(f, "nodes", k->ngroups++);
        take_group(&one, g);
        f->failed |= dt_fields_end(&one) < 0;
        k->total += g->count;
        k->size.count += g->usable ? g->count : 0;
    }
}

static void take_partition(struct dt_fields *f, struct dt_partition *p)
{
    need_text(f, "name", &p->name);
    need_text(f, "state", &p->state);
    dt_fields_bool(f, "preset", &p->preset);
    dt_take_partition_limits(f, &p->limits);
}

static void take_switch(struct dt_fields *f, struct dt_switch *w)
{
    need_text(f, "name", &w->name);
    dt_fields_size(f, "level", &w->level);
    dt_fields_text(f, "nodes", &w->nodes);
    dt_fields_text(f, "switches", &w->switches);
}

static void take_kinds(struct dt_fields *f, struct dt_system *s)
{
    size_t n = dt_fields_array(f, "kinds");
    s->kinds = dt_xcalloc(n, sizeof(*s->kinds));
    while (s->nkinds < n && !f->failed) {
        struct dt_fields one = dt_fields_element(f, "kinds", s->nkinds);
        take_kind(&one, &s->kinds[s->nkinds++]);
        f->failed |= dt_fields_end(&one) < 0;
    }
}

static void take_partitions(struct dt_fields *f, struct dt_system *s)
{
    size_t n = dt_fields_array(f, "partitions");
    s->partitions = dt_xcalloc(n, sizeof(*s->partitions));
    while (s->npartitions < n && !f->failed) {
        struct dt_fields one = dt_fields_element(f, "partitions", s->npartitions);
        take_partition(&one, &s->partitions[s->npartitions++]);
        f->failed |= dt_fields_end(&one) < 0;
    }
}

static void take_switches(struct dt_fields *f, struct dt_system *s)
{
    size_t n = dt_fields_array(f, "switches");
    s->switches = dt_xcalloc(n, sizeof(*s->switches));
    while (s->nswitches < n && !f->failed) {
        struct dt_fields one = dt_fields_element(f, "switches", s->nswitches);
        take_switch(&one, &s->switches[s->nswitches++]);
        f->failed |= dt_fields_end(&one) < 0;
    }
}

/* What is named must be there. */
static void check_names(struct dt_fields *f, const struct dt_system *s)
{
    for (size_t i = 0; i < s->nkinds && !f->failed; i++) {
        struct dt_strv names = DT_STRV_INIT;
        dt_strv_split(&names, s->kinds[i].partitions, ",");
        for (size_t j = 0; j < names.n && !f->failed; j++)
            if (!dt_system_partition(s, names.v[j], NULL))
                dt_fields_fail(f, "kinds", "[%zu].partitions: there is no partition \"%s\"", i,
                               names.v[j]);
        dt_strv_free(&names);
    }
}

struct dt_system *dt_system_from_json(struct json_object *o, const char *what, struct dt_error *e)
{
    struct dt_system *s = dt_xcalloc(1, sizeof(*s));
    struct dt_fields f = dt_fields_of(o, what ? dt_xstrdup(what) : NULL, e);
    size_t version = 0;
    dt_fields_size(&f, "version", &version);
    if (!f.failed && version != DT_SYSTEM_VERSION)
        dt_fields_fail(&f, "version",
                       "%d is needed here: this file is of another release; save it anew with "
                       "dt-tune topo --save",
                       DT_SYSTEM_VERSION);
    dt_fields_text(&f, "cluster", &s->name);
    dt_fields_text(&f, "slurm", &s->version);
    dt_fields_bool(&f, "backfill", &s->backfill);
    dt_take_scheduling(&f, &s->scheduling);
    take_kinds(&f, s);
    take_partitions(&f, s);
    take_switches(&f, s);
    dt_take_amounts(&f, "licenses", &s->licenses);
    dt_take_limits(&f, &s->limits, &s->nlimits);
    check_names(&f, s);
    if (dt_fields_end(&f) == 0)
        return s;
    dt_system_free(s);
    return NULL;
}

/* ---- otherwise ---- */

void dt_node_group_free(struct dt_node_group *g)
{
    free(g->state);
    free(g->names);
    dt_places_free(&g->places);
}

void dt_node_kind_free(struct dt_node_kind *k)
{
    for (size_t i = 0; i < k->ngroups; i++)
        dt_node_group_free(&k->groups[i]);
    free(k->groups);
    free(k->partitions);
    dt_class_free(&k->size);
}

void dt_partition_free(struct dt_partition *p)
{
    free(p->name);
    free(p->state);
    dt_partition_limits_free(&p->limits);
}

void dt_switch_free(struct dt_switch *w)
{
    free(w->name);
    free(w->nodes);
    free(w->switches);
}

void dt_system_free(struct dt_system *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nkinds; i++)
        dt_node_kind_free(&s->kinds[i]);
    for (size_t i = 0; i < s->npartitions; i++)
        dt_partition_free(&s->partitions[i]);
    for (size_t i = 0; i < s->nswitches; i++)
        dt_switch_free(&s->switches[i]);
    for (size_t i = 0; i < s->nlimits; i++)
        dt_limits_free(&s->limits[i]);
    dt_amounts_free(&s->licenses);
    free(s->kinds);
    free(s->partitions);
    free(s->switches);
    free(s->limits);
    free(s->name);
    free(s->version);
    free(s);
}

const struct dt_partition *dt_system_partition(const struct dt_system *s, const char *name,
                                               struct dt_error *e)
{
    struct dt_strv known = DT_STRV_INIT;
    for (size_t i = 0; i < s->npartitions; i++)
        if (name ? strcmp(s->partitions[i].name, name) == 0 : s->partitions[i].preset)
            return &s->partitions[i];
    for (size_t i = 0; i < s->npartitions; i++)
        dt_strv_add(&known, s->partitions[i].name);
    char *list = dt_strv_join(&known, ", ");
    if (name)
        dt_fail(e, "--partition: there is no partition \"%s\"; there are: %s", name, list);
    else
        dt_fail(e, "no partition is the default here; choose one with --partition");
    free(list);
    dt_strv_free(&known);
    return NULL;
}

bool dt_kind_in(const struct dt_node_kind *k, const char *partition)
{
    size_t n = strlen(partition);
    for (const char *p = k->partitions; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strcspn(p, ",") == n && strncmp(p, partition, n) == 0)
            return true;
    return false;
}
