#include "history/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void dt_applied_free(struct dt_applied *a)
{
    json_object_put(a->config);
    free(a->text);
    free(a->coordinator);
    *a = (struct dt_applied){0};
}

static struct json_object *best_config(struct json_object *record)
{
    return dt_json_get(dt_json_get(record, "best"), "config");
}

static void take(struct dt_applied *a, struct json_object *record)
{
    double value = dt_json_num(dt_json_get(record, "best"), "value", NAN);
    const char *objective = dt_json_str(record, "objective", "?");
    bool time = strcmp(objective, "time") == 0 || strcmp(objective, "turnaround") == 0;
    char *text = dt_xasprintf(time ? "%.2f s" : "%.5g", value);
    const char *coordinator = dt_json_str(record, "coordinator", NULL);
    a->coordinator = coordinator ? dt_xstrdup(coordinator) : NULL;
    a->config = json_object_get(best_config(record));
    a->text = dt_xasprintf("study %s (%s %s%s)", dt_json_str(record, "study", "?"), objective, text,
                           dt_json_get(dt_json_get(record, "best"), "schedule")
                               ? " by a schedule, of which these are the last values"
                               : "");
    free(text);
}

/* ---- the last study of a workload ---- */

struct wanted {
    const struct dt_workload *w;
    const char *objective; /* NULL: any */
};

static bool same_program(struct json_object *record, const struct dt_workload *w)
{
    const char *signature = dt_json_str(record, "signature", "");
    return strcmp(dt_json_str(record, "program", ""), w->own) == 0 ||
           (strncmp(signature, w->program, strlen(w->program)) == 0 &&
            signature[strlen(w->program)] == '-');
}

/* The last of this very workload before the last of the same program, and only those with a
 * result. */
static struct json_object *choose(const struct dt_history *h, const struct wanted *want)
{
    struct json_object *found = NULL;
    for (size_t i = 0; i < h->n; i++) {
        struct json_object *record = h->v[i];
        if (!same_program(record, want->w) || !best_config(record))
            continue;
        const char *signature = dt_json_str(record, "signature", "");
        if (strcmp(signature + strcspn(signature, "-"), strchr(want->w->signature, '-')) == 0)
            return record;
        if (!found && (!want->objective ||
                       strcmp(dt_json_str(record, "objective", ""), want->objective) == 0))
            found = record;
    }
    return found;
}

/* Of the studies that are known none will do: says what there is instead. */
static int nothing_found(const char *dir, const struct dt_history *h, const struct wanted *want,
                         const char *script, struct dt_error *e)
{
    size_t known = 0;
    const char *objective = NULL;
    for (size_t i = 0; i < h->n; i++) {
        if (!same_program(h->v[i], want->w))
            continue;
        known++;
        if (!objective && best_config(h->v[i]))
            objective = dt_json_str(h->v[i], "objective", "?");
    }
    if (objective)
        return dt_fail(e,
                       "no study of %s is for the objective %s, the last one in %s was for %s; "
                       "leave out --dt-objective, or tune for it",
                       script, want->objective, dir, objective);
    if (known)
        return dt_fail(e,
                       "%zu stud%s of %s %s known in %s, but no trial ever succeeded; tune it "
                       "first: sbatch --dt-tune %s",
                       known, known == 1 ? "y" : "ies", script, known == 1 ? "is" : "are", dir,
                       script);
    return dt_fail(e,
                   "no study of %s is known in %s (the program counts: the script's commands and "
                   "its arguments); tune it first, or give --dt-apply=STUDY, one that dt-tune "
                   "history lists",
                   script, dir);
}

int dt_history_find(const char *dir, const struct dt_workload *w, const struct dt_spec *spec,
                    bool objective_asked, const char *script, struct dt_applied *a,
                    struct dt_error *e)
{
    struct dt_history h;
    char *objective = dt_spec_objective_text(spec);
    struct wanted want = {.w = w, .objective = objective_asked ? objective : NULL};
    *a = (struct dt_applied){0};
    int rc = dt_history_read(dir, NULL, false, &h, e);
    struct json_object *record = rc == 0 ? choose(&h, &want) : NULL;
    if (record)
        take(a, record);
    else if (rc == 0)
        rc = nothing_found(dir, &h, &want, script, e);
    dt_history_free(&h);
    free(objective);
    return rc;
}

/* ---- the study that is named ---- */

/* The coordinator that a study's SPEC asks for, or NULL. Caller frees. */
static char *coordinator_of(const char *dir)
{
    char *path = dt_xasprintf("%s/spec.json", dir), *text = dt_read_text(path, 1 << 20, NULL);
    struct json_object *spec = text ? dt_json_parse(text, path, NULL) : NULL;
    const char *name = dt_json_str(dt_json_get(spec, "launch"), "coordinator", NULL);
    char *found = name ? dt_xstrdup(name) : NULL;
    json_object_put(spec);
    free(text);
    free(path);
    return found;
}

/* 1: it is the folder of a study, and what that says of its best configuration was read. */
static int from_folder(const char *dir, struct dt_applied *a, struct dt_error *e)
{
    char *journal = dt_xasprintf("%s/journal.jsonl", dir),
         *best = dt_xasprintf("%s/best.json", dir);
    int rc = access(journal, F_OK) == 0 || access(best, F_OK) == 0;
    if (rc && access(best, F_OK) < 0 && errno == ENOENT) {
        rc = dt_fail(e, "%s: the study has found no configuration (yet)", dir);
    } else if (rc) {
        char *text = dt_read_text(best, 1 << 20, e);
        a->config = text ? dt_json_parse(text, best, e) : NULL;
        if (a->config && !json_object_is_type(a->config, json_type_object)) {
            dt_fail(e, "%s: a configuration must be an object", best);
            json_object_put(a->config);
            a->config = NULL;
        }
        a->text = a->config ? dt_xasprintf("study %s", dir) : NULL;
        a->coordinator = a->config ? coordinator_of(dir) : NULL;
        rc = a->config ? 1 : -1;
        free(text);
    }
    free(journal);
    free(best);
    return rc;
}

static struct json_object *by_key(const struct dt_history *h, const char *key)
{
    for (size_t i = 0; i < h->n; i++)
        if (dt_history_has_key(h->v[i], key) && best_config(h->v[i]))
            return h->v[i];
    return NULL;
}

static int from_history(const char *dir, const char *study, struct dt_applied *a,
                        struct dt_error *e)
{
    struct dt_history h;
    if (dt_history_read(dir, NULL, false, &h, e) < 0)
        return -1;
    struct json_object *record = dt_history_study(&h, study);
    int rc = 0;
    if (record && !best_config(record))
        rc = dt_fail(e, "\"%s\": no trial of this study succeeded", study);
    else if (record || (record = by_key(&h, study)))
        take(a, record);
    else
        rc = dt_fail(e,
                     "\"%s\" is neither a study's folder nor one of those in %s; dt-tune history "
                     "lists them",
                     study, dir);
    dt_history_free(&h);
    return rc;
}

int dt_history_find_study(const char *dir, const char *study, struct dt_applied *a,
                          struct dt_error *e)
{
    char *below = dt_xasprintf("dt-tune-%s", study);
    *a = (struct dt_applied){0};
    int rc = *study ? from_folder(study, a, e)
                    : dt_fail(e, "the study is missing; write --dt-apply=STUDY, or --dt-apply "
                                 "alone");
    if (rc == 0)
        rc = from_folder(below, a, e);
    if (rc == 0 && dir)
        rc = from_history(dir, study, a, e);
    else if (rc == 0)
        rc = dt_fail(e, "\"%s\" is not the folder of a study", study);
    free(below);
    return rc < 0 ? -1 : 0;
}

/* ---- what to make of it ---- */

struct json_object *dt_history_spec(struct json_object *config, const char *coordinator)
{
    struct json_object *doc = json_object_new_object();
    bool het = dt_json_int(config, "ps", 0) > 0 &&
               strcmp(dt_json_str(config, "layout", "packed"), "het") == 0;
    /* With one layout left the space has no such parameter, unless it is het. */
    if (!het)
        json_object_object_del(config, "layout");
    json_object_object_add(doc, "layout", json_object_new_string(het ? "het" : "packed"));
    dt_spec_add_config(doc, config);
    if (coordinator) {
        struct json_object *launch = json_object_new_object();
        json_object_object_add(launch, "coordinator", json_object_new_string(coordinator));
        json_object_object_add(doc, "launch", launch);
    }
    return doc;
}
