#include "history/history.h"

#include <stdlib.h>
#include <string.h>

/* ---- FNV-1a ---- */

#define FNV_OFFSET 14695981039346656037U
#define FNV_PRIME 1099511628211U

static uint64_t hash_bytes(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * FNV_PRIME;
    return h;
}

/* With its end, so that "a", "bc" and "ab", "c" are not the same. */
static uint64_t hash_word(uint64_t h, const char *s)
{
    return hash_bytes(h, s, strlen(s) + 1);
}

static void write_hash(char text[17], uint64_t h)
{
    snprintf(text, 17, "%016llx", (unsigned long long)h);
}

/* ---- the program ---- */

static uint64_t hash_script(const char *script)
{
    uint64_t h = FNV_OFFSET;
    for (const char *s = script; *s;) {
        size_t len = strcspn(s, "\n"), end = len, start = strspn(s, " \t");
        while (end > 0 && strchr(" \t\r", s[end - 1]))
            end--;
        bool interpreter = s == script && dt_starts_with(s, "#!");
        if (start < end && (s[start] != '#' || interpreter))
            h = hash_bytes(hash_bytes(h, s, end), "\n", 1);
        s += len + (s[len] == '\n');
    }
    return h;
}

void dt_workload_script(const char *script, char hash[17])
{
    write_hash(hash, hash_script(script));
}

/* ---- the task ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void hyperparameters(const struct dt_spec *spec, struct dt_strv *names)
{
    for (size_t i = 0; i < spec->nparams; i++)
        if (spec->params[i].hyper)
            dt_strv_add(names, spec->params[i].name);
    if (names->n)
        qsort(names->v, names->n, sizeof(*names->v), by_name);
}

/* "accuracy>=0.9", or NULL where nothing is asked. Caller frees. */
static char *bound_text(const struct dt_bound *b)
{
    if (!b->metric)
        return NULL;
    char *value = dt_format_double(b->value);
    char *text = dt_xasprintf("%s%s%s", b->metric, b->at_least ? ">=" : "<=", value);
    free(value);
    return text;
}

static uint64_t hash_task(const struct dt_spec *spec)
{
    char *objective = dt_spec_objective_text(spec), *target = bound_text(&spec->target);
    char *quality = bound_text(&spec->quality);
    struct dt_strv names = DT_STRV_INIT;
    uint64_t h = hash_word(FNV_OFFSET, objective);
    h = hash_word(h, target ? target : "");
    h = hash_word(h, quality ? quality : "");
    hyperparameters(spec, &names);
    for (size_t i = 0; i < names.n; i++)
        h = hash_word(h, names.v[i]);
    dt_strv_free(&names);
    free(objective);
    free(target);
    free(quality);
    return h;
}

void dt_workload_make(struct dt_workload *w, const struct dt_spec *spec, const char *script,
                      const struct dt_strv *args)
{
    uint64_t own = hash_script(script);
    write_hash(w->script, own);
    for (size_t i = 0; i < args->n; i++)
        own = hash_word(own, args->v[i]);
    write_hash(w->own, own);
    write_hash(w->program, spec->history_key ? hash_word(FNV_OFFSET, spec->history_key) : own);
    write_hash(w->task, hash_task(spec));
    snprintf(w->signature, sizeof(w->signature), "%s-%s", w->program, w->task);
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_string(value));
}

static void add_strings(struct json_object *o, const char *key, const struct dt_strv *l)
{
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < l->n; i++)
        json_object_array_add(list, json_object_new_string(l->v[i]));
    json_object_object_add(o, key, list);
}

void dt_workload_to_json(const struct dt_workload *w, const struct dt_spec *spec,
                         const struct dt_strv *args, struct json_object *record)
{
    char *objective = dt_spec_objective_text(spec), *target = bound_text(&spec->target);
    char *quality = bound_text(&spec->quality);
    struct dt_strv names = DT_STRV_INIT;
    hyperparameters(spec, &names);
    add_string(record, "signature", w->signature);
    add_string(record, "key", spec->history_key);
    add_string(record, "program", w->own);
    add_string(record, "script", w->script);
    add_strings(record, "args", args);
    add_string(record, "objective", objective);
    add_string(record, "goal", spec->maximize ? "maximize" : "minimize");
    add_string(record, "target", target);
    add_string(record, "quality", quality);
    add_string(record, "coordinator", spec->coordinator);
    add_strings(record, "hyperparameters", &names);
    dt_strv_free(&names);
    free(objective);
    free(target);
    free(quality);
}
