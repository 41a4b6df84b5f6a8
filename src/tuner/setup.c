#include "tuner/setup.h"
#include "backend/backend.h"
#include "conf/limits.h"
#include "expand/carrier.h"
#include "history/history.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the tuner itself needs. */
#define TUNER_SPARE_MIN 10

/* --dt-resume=DIR|JOBID to the absolute path of a study's folder. */
static char *resume_dir(const struct dt_option *o, struct dt_error *e)
{
    int64_t id;
    bool number = o->value && dt_parse_int64(o->value, &id) == 0;
    char *name =
        number ? dt_xasprintf("dt-tune-%s", o->value) : dt_xstrdup(o->value ? o->value : "");
    char *dir = realpath(name, NULL), *journal = dir ? dt_xasprintf("%s/journal.jsonl", dir) : NULL;
    struct stat st;
    if (!dir) {
        dt_fail(e, "\"%s\": %s; give the study's folder or its job id", name, strerror(errno));
    } else if (stat(journal, &st) < 0) {
        dt_fail(e, "\"%s\" is not the folder of a study: it has no journal.jsonl (%s)", name,
                strerror(errno));
        free(dir);
        dir = NULL;
    }
    free(journal);
    free(name);
    return dir;
}

static bool can_be_written(const char *value, struct dt_error *e)
{
    char *quoted = dt_sbatch_quote(value, e);
    bool can = quoted != NULL;
    free(quoted);
    return can;
}

/* What stands in a trial's script must be able to: better now than when the tuner writes it. */
static int check_texts(const struct dt_submission *s, struct dt_error *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_option *o = &s->options[i];
        bool ours = o->def && (o->def->class == DT_OPT_TUNER || o->def->class == DT_OPT_DT);
        bool told = !ours || strcmp(o->name, "job-name") == 0 || strcmp(o->name, "input") == 0;
        if (told && o->value && !can_be_written(o->value, e))
            return dt_fail_at_option(s, o, e);
    }
    char *cwd = getcwd(NULL, 0); /* where the study's folder will be */
    int rc = cwd && !can_be_written(cwd, e) ? dt_fail_at(e, "the name of this folder") : 0;
    free(cwd);
    return rc;
}

static int make_space(struct dt_setup *s, struct dt_error *e)
{
    bool steps = s->spec->layout == DT_LAYOUT_STEPS;
    if (steps && !s->asked && s->cluster && s->cluster->n)
        s->asked = dt_allocation_asked(&s->job, s->cluster,
                                       dt_submission_get(s->submission, "exclusive") != NULL);
    s->source = (struct dt_space_source){s->spec, &s->job, s->cluster};
    if (steps)
        s->source.cluster = s->allocation ? s->allocation : s->asked;
    if (s->applied) { /* whether it fits is asked later: an empty space would blame the ranges */
        s->any_job = (struct dt_job){.tasks = s->job.tasks, .cpus = 1};
        s->source = (struct dt_space_source){s->spec, &s->any_job, NULL};
    }
    s->space = dt_space_generate(&s->source, &s->why_layout, e);
    if (!s->space)
        return -1;
    s->submitted = dt_xcalloc(s->space->n, sizeof(double));
    dt_config_submitted(s->spec, s->space, &s->job, s->submitted);
    return 0;
}

int dt_setup_allocate(struct dt_setup *s, struct dt_cluster *allocation, struct dt_error *e)
{
    dt_cluster_free(s->allocation);
    dt_space_free(s->space);
    free(s->submitted);
    s->allocation = allocation;
    s->space = NULL;
    s->submitted = NULL;
    return make_space(s, e);
}

const double *dt_setup_first(const struct dt_setup *s)
{
    const struct dt_space *space = s->space;
    const char *why;
    if (s->spec->layout != DT_LAYOUT_STEPS)
        return s->submitted;
    for (size_t i = 0; i < space->n; i++)
        if (!space->params[i].hyper && !isnan(s->submitted[i]) &&
            !dt_param_contains(&space->params[i], s->submitted[i]))
            return NULL;
    return dt_space_allows(space, s->submitted, &why) ? s->submitted : NULL;
}

struct dt_job dt_setup_job(const struct dt_setup *s)
{
    struct dt_job job = s->job;
    if (s->spec->layout == DT_LAYOUT_STEPS)
        job.nodes = job.nodes_max = job.tasks_per_node = job.listed = 0;
    return job;
}

/* The values of a configuration, before they are mixed with those of SPEC. */
static int check_config(struct json_object *config, const char *path, struct dt_error *e)
{
    if (!json_object_is_type(config, json_type_object))
        return dt_fail(e, "%s: a configuration must be an object like {\"ps\": 1, \"workers\": 4}",
                       path);
    struct json_object *doc = json_object_new_object(), *layout = NULL;
    dt_spec_add_config(doc, config);
    struct dt_spec *spec = dt_spec_parse(doc, NULL, path, e);
    int rc = spec ? 0 : -1;
    const char *name = dt_json_str(config, "layout", "");
    if (rc == 0 && json_object_object_get_ex(config, "layout", &layout) &&
        strcmp(name, "het") != 0 && strcmp(name, "packed") != 0)
        rc = dt_fail(e, "%s: layout: choose \"het\" or \"packed\"", path);
    dt_spec_free(spec);
    json_object_put(doc);
    return rc;
}

static struct json_object *read_config(const char *path, struct dt_error *e)
{
    char *text = *path ? dt_read_text(path, 1024 * 1024, e) : NULL;
    struct json_object *o = text ? dt_json_parse(text, path, e) : NULL;
    if (!*path)
        dt_fail(e, "the file's name is missing; write --dt-config=C.json");
    free(text);
    if (!o || check_config(o, path, e) == 0)
        return o;
    json_object_put(o);
    return NULL;
}

/* Says which option asks for more than there is; takes over `what`. */
static int too_much(const struct dt_setup *s, const char *option, char *what, struct dt_error *e)
{
    char *title = dt_option_title(s->submission, dt_submission_get(s->submission, option));
    dt_fail(e, "%s: %s; ask for less, or for another partition", title, what);
    free(title);
    free(what);
    return -1;
}

/* Of several partitions Slurm may choose another than the one we know. */
static bool several_partitions(const struct dt_setup *s)
{
    const char *partition = dt_submission_value(s->submission, "partition");
    return partition && strchr(partition, ',');
}

static uint64_t largest_tmp(const struct dt_cluster *c)
{
    uint64_t most = 0;
    for (size_t i = 0; i < c->n; i++)
        most = c->classes[i].tmp_mib > most ? c->classes[i].tmp_mib : most;
    return most;
}

/* What every trial shares with the job as submitted: without that the space would be empty, and say
 * less. */
static int check_asked(const struct dt_setup *s, struct dt_error *e)
{
    const struct dt_cluster *c = s->cluster;
    const struct dt_job *job = &s->job;
    size_t nodes = dt_cluster_nodes(c);
    if (several_partitions(s))
        return 0;
    if (job->nodes > nodes)
        return too_much(
            s, "nodes",
            dt_xasprintf("%zu nodes, and partition %s has %zu that are up and fit this job",
                         job->nodes, c->partition, nodes),
            e);
    if (job->time > c->limits.max_time)
        return too_much(s, "time",
                        dt_xasprintf("%g minutes, and partition %s allows %g", job->time / 60,
                                     c->partition, c->limits.max_time / 60),
                        e);
    if (job->given.tmp_mib > largest_tmp(c))
        return too_much(
            s, "tmp",
            dt_xasprintf(
                "%" PRIu64
                " MiB of disk, and no node of partition %s that is up has more than %" PRIu64,
                job->given.tmp_mib, c->partition, largest_tmp(c)),
            e);
    return 0;
}

/* The first trial is the job as submitted: one that no node can run would wait for ever, or be
 * refused when the user no longer looks. */
static int check_submitted(const struct dt_setup *s, struct dt_error *e)
{
    const struct dt_cluster *c = s->cluster;
    const struct dt_job *job = &s->job;
    const char *script = s->submission->script_name;
    const char *why = dt_feasible_why_not(c, NULL, &job->given, 1);
    if (!why || several_partitions(s))
        return 0;
    if (why != dt_no_room)
        return dt_fail(e,
                       "%s: the job as submitted, which is the first trial, would never start: %s",
                       script, why);
    return dt_fail(
        e,
        "%s: the job as submitted (%zu tasks, each with %zu CPUs and %zu GPUs), which is the first "
        "trial, asks for more CPUs, memory, disk or GPUs than the %zu nodes have that are up in "
        "partition %s; "
        "ask for less, or for another partition",
        script, job->tasks, job->cpus, job->gpus, dt_cluster_nodes(c), c->partition);
}

/* The studies that SPEC wants to learn from must be there: later nobody looks. */
static int check_past(const struct dt_setup *s, struct dt_error *e)
{
    struct dt_workload w;
    if (!s->spec->history_from.n)
        return 0;
    dt_workload_make(&w, s->spec, s->script, &s->submission->args);
    struct dt_past *p = NULL;
    if (s->history)
        p = dt_history_load_named(s->history, &w, &s->spec->history_from, s->space, false, e);
    else
        dt_fail(e, "nobody knows where your home is: set DT_TUNE_HISTORY to the history's folder");
    int rc = p ? 0 : dt_fail_at(e, "history.from");
    dt_past_free(p);
    return rc;
}

/* ---- --dt-apply ---- */

static int exclude_each_other(const struct dt_submission *s, const struct dt_option *a,
                              const struct dt_option *b, struct dt_error *e)
{
    char *first = dt_option_title(s, a), *second = dt_option_title(s, b);
    dt_fail(e, "%s and %s exclude each other: --dt-apply tunes nothing; leave one of them out",
            first, second);
    free(first);
    free(second);
    return -1;
}

int dt_setup_applies(const struct dt_submission *s, struct dt_error *e)
{
    static const char *const rivals[] = {"dt-tune", "dt-resume", "dt-config", "here"};
    static const char *const useful[] = {"dt-apply", "dt-objective", "dt-dry-run"};
    const struct dt_option *apply = dt_submission_get(s, "dt-apply");
    if (!apply)
        return 0;
    for (size_t i = 0; i < sizeof(rivals) / sizeof(*rivals); i++) {
        const struct dt_option *o = dt_submission_get(s, rivals[i]);
        if (o && o->origin == apply->origin)
            return exclude_each_other(s, apply, o, e);
        if (o && o->origin > apply->origin)
            return 0;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_option *o = &s->options[i];
        bool pointless = o->def && o->def->class == DT_OPT_DT && o->origin == DT_FROM_ARGV;
        for (size_t j = 0; pointless && j < sizeof(useful) / sizeof(*useful); j++)
            pointless = strcmp(o->name, useful[j]) != 0;
        if (pointless)
            return exclude_each_other(s, apply, o, e);
    }
    return 1;
}

/* The configuration of the study that is named, or of this workload's last. `doc` is what script
 * and options say of the tuning. */
static int find_applied(const struct dt_submission *sub, struct json_object *doc, const char *text,
                        const char *name, struct dt_applied *a, struct dt_error *e)
{
    const char *study = dt_submission_value(sub, "dt-apply");
    struct dt_carrier carrier;
    struct dt_workload w;
    char *dir = dt_history_dir();
    int rc = -1;
    if (dt_carrier_parse(sub->script, &carrier) == 0)
        dt_fail(e, "%s is in a configuration already, for dt-tune made it: submit it as it is",
                sub->script_name);
    else if (study)
        rc = dt_history_find_study(dir, study, a, e);
    else if (!dir)
        dt_fail(e, "nobody knows where your home is: set DT_TUNE_HISTORY to the history's folder, "
                   "or give --dt-apply=DIR, a study's folder");
    else {
        struct dt_spec *spec = dt_spec_parse(doc, text, name, e);
        if (spec) {
            dt_workload_make(&w, spec, sub->script, &sub->args);
            rc = dt_history_find(dir, &w, spec, dt_json_get(doc, "objective") != NULL,
                                 sub->script_name, a, e);
        }
        dt_spec_free(spec);
    }
    free(dir);
    return rc;
}

/* Puts the document of the stored configuration in the place of the user's. */
static int apply_stored(struct dt_setup *s, struct json_object **doc, char **text, char **name,
                        struct dt_error *e)
{
    struct dt_applied a = {0};
    if (find_applied(s->submission, *doc, *text, *name, &a, e) < 0)
        return dt_fail_at_option(s->submission, dt_submission_get(s->submission, "dt-apply"), e);
    s->config = a.config;
    s->applied = a.text;
    json_object_put(*doc);
    *doc = dt_history_spec(s->config, a.coordinator);
    free(a.coordinator);
    free(*text);
    free(*name);
    *text = NULL;
    *name = dt_xasprintf("the best configuration of %s", s->applied);
    return 0;
}

/* ---- a setup ---- */

/* The SPEC document of the submission, with the configuration that it names. */
static struct json_object *read_document(struct dt_setup *s, char **text, char **name,
                                         struct dt_error *e)
{
    int applies = dt_setup_applies(s->submission, e);
    const struct dt_option *config = applies ? NULL : dt_submission_get(s->submission, "dt-config");
    if (applies < 0)
        return NULL;
    if (config && config->value && !(s->config = read_config(config->value, e))) {
        dt_fail_at(e, "--dt-config");
        return NULL;
    }
    struct json_object *doc = dt_spec_merge(s->submission, text, name, e);
    if (doc && applies && apply_stored(s, &doc, text, name, e) < 0) {
        json_object_put(doc);
        return NULL;
    }
    if (doc && s->config && !applies)
        dt_spec_add_config(doc, s->config);
    return doc;
}

/* SPEC may say so too: its reader does not know who reads it. */
static void drop_external(struct json_object *doc)
{
    struct json_object *search = dt_json_get(doc, "search");
    if (json_object_is_type(search, json_type_object) &&
        strcmp(dt_json_str(search, "algorithm", ""), "external") == 0)
        json_object_object_del(search, "algorithm");
}

static int make_external(struct dt_setup *s, struct dt_error *e)
{
    if (s->spec->pruner.rule == DT_PRUNE_PBT)
        return dt_fail(e, "search.early_stop: pbt changes hyperparameters by itself, and here another "
                          "program chooses them; use asha, hyperband or median");
    free(s->spec->algorithm);
    s->spec->algorithm = dt_xstrdup("external");
    return 0;
}

/* What the administrator says of studies. */
static int keep_to_conf(struct dt_setup *s, struct json_object *doc, const char *name,
                        struct dt_error *e)
{
    if (dt_conf_read(&s->conf, e) < 0 ||
        dt_conf_may_tune(&s->conf, dt_submission_value(s->submission, "account"), e) < 0)
        return -1;
    return dt_conf_limit(&s->conf, doc, name ? name : "this submission", e);
}

static struct dt_setup *new_setup(struct dt_submission *submission, const char *sbatch,
                                  struct dt_cluster *cluster, bool external, struct dt_error *e)
{
    struct dt_setup *s = dt_xcalloc(1, sizeof(*s));
    s->external = external;
    struct json_object *doc = NULL;
    char *text = NULL, *name = NULL;
    s->cluster = cluster;
    s->submission = submission;
    if (!submission->script) {
        dt_fail(e, "--help and --version cannot be tuned: leave them out, or leave out --dt-tune");
        goto fail;
    }
    s->script = dt_xstrdup(submission->script);
    s->sbatch = sbatch ? dt_xstrdup(sbatch) : NULL;
    const char *conf = getenv("SLURM_CONF");
    s->slurm_conf = conf ? dt_xstrdup(conf) : NULL;
    doc = read_document(s, &text, &name, e);
    if (doc && external)
        drop_external(doc);
    if (doc && !s->config && keep_to_conf(s, doc, name, e) < 0)
        goto fail;
    if (!doc || !(s->spec = dt_spec_parse(doc, text, name, e)) ||
        dt_job_read(s->submission, &s->job, e) < 0 || check_texts(s->submission, e) < 0)
        goto fail;
    if (external && make_external(s, e) < 0)
        goto fail;
    if (!s->spec->no_history)
        s->history = dt_history_dir();
    const struct dt_option *resume = s->applied ? NULL : dt_submission_get(submission, "dt-resume");
    if (resume && !(s->resume = resume_dir(resume, e))) {
        dt_fail_at_option(submission, resume, e);
        goto fail;
    }
    if (!s->cluster && !(s->cluster = dt_slurm_cluster(s->submission, dt_spec_has_kinds(s->spec), e)))
        goto fail;
    if (dt_natural_fill(s->spec, &s->job, s->cluster, e) < 0)
        goto fail;
    if (s->cluster->nbinding && !external && !s->config && !dt_submission_get(submission, "here"))
        s->cluster->tuner_jobs = 1;
    if ((!s->config && check_asked(s, e) < 0) || make_space(s, e) < 0 || check_past(s, e) < 0 ||
        (!s->config && check_submitted(s, e) < 0))
        goto fail;
    goto out;
fail:
    dt_setup_free(s);
    s = NULL;
out:
    json_object_put(doc);
    free(text);
    free(name);
    return s;
}

struct dt_setup *dt_setup_new(struct dt_submission *submission, const char *sbatch,
                              struct dt_cluster *cluster, struct dt_error *e)
{
    return new_setup(submission, sbatch, cluster, false, e);
}

struct dt_setup *dt_setup_new_external(struct dt_submission *submission, const char *sbatch,
                                       struct dt_error *e)
{
    return new_setup(submission, sbatch, NULL, true, e);
}

/* The longest that the tuning job may have, seconds. */
static double tuner_most(const struct dt_setup *s)
{
    if (s->conf.tuner_time_min)
        return (double)s->conf.tuner_time_min * 60;
    if (s->conf.tuner_partition) /* of which we know nothing */
        return INFINITY;
    return s->cluster ? s->cluster->limits.max_time : INFINITY;
}

/* Minutes that the tuning job should get: the deadline, or all trials one after the other, within
 * what the partition allows. 0: as Slurm does by default. */
static long tuner_minutes(const struct dt_setup *s)
{
    double seconds = s->spec->deadline;
    double most = tuner_most(s);
    if (!isfinite(seconds) && s->job.time > 0)
        seconds = s->job.time * ceil((double)s->spec->max_configs / (double)s->spec->parallel);
    if (!isfinite(seconds))
        return isfinite(most) ? (long)(most / 60) : 0;
    return (long)fmin(ceil(seconds / 60) + TUNER_SPARE_MIN, floor(most / 60));
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
    if (value)
        json_object_object_add(o, key, json_object_new_string(value));
}

char *dt_setup_text(const struct dt_setup *s, const char *exec)
{
    struct json_object *doc = json_object_new_object(), *tuner = json_object_new_object();
    long minutes = tuner_minutes(s);
    json_object_object_add(doc, "version", json_object_new_int(1));
    add_string(doc, "exec", exec);
    bool steps = s->spec->layout == DT_LAYOUT_STEPS;
    if (steps)
        json_object_object_add(tuner, "steps", json_object_new_boolean(true));
    else
        json_object_object_add(
            tuner, "mem_mib",
            json_object_new_int64(s->conf.tuner_mem_mib ? (int64_t)s->conf.tuner_mem_mib
                                                        : DT_TUNER_MEM_MIB));
    if (!steps && minutes > 0)
        json_object_object_add(tuner, "time_min", json_object_new_int64(minutes));
    if (!steps)
        add_string(tuner, "partition", s->conf.tuner_partition);
    json_object_object_add(doc, "tuner", tuner);
    add_string(doc, "sbatch", s->sbatch);
    add_string(doc, "slurm_conf", s->slurm_conf);
    add_string(doc, "resume", s->resume);
    add_string(doc, "history", s->history);
    if (s->external)
        json_object_object_add(doc, "external", json_object_new_boolean(true));
    json_object_object_add(doc, "submission", dt_submission_to_json(s->submission));
    json_object_object_add(doc, "spec", json_object_get(s->spec->json));
    if (s->cluster)
        json_object_object_add(doc, "cluster", dt_cluster_to_json(s->cluster));
    if (s->allocation)
        json_object_object_add(doc, "allocation", dt_cluster_to_json(s->allocation));
    char *text = dt_json_text(doc);
    json_object_put(doc);
    return text;
}

static char *dup_string(struct json_object *o, const char *key)
{
    const char *s = dt_json_str(o, key, NULL);
    return s ? dt_xstrdup(s) : NULL;
}

struct dt_setup *dt_setup_from_json(struct json_object *doc, const char *script, struct dt_error *e)
{
    struct dt_setup *s = dt_xcalloc(1, sizeof(*s));
    struct json_object *cluster = dt_json_get(doc, "cluster");
    struct json_object *allocation = dt_json_get(doc, "allocation");
    s->script = dt_xstrdup(script);
    s->sbatch = dup_string(doc, "sbatch");
    s->slurm_conf = dup_string(doc, "slurm_conf");
    s->resume = dup_string(doc, "resume");
    s->history = dup_string(doc, "history");
    s->external = dt_json_bool(doc, "external", false);
    s->submission = dt_submission_from_json(dt_json_get(doc, "submission"), e);
    if (s->submission)
        s->spec = dt_spec_parse(dt_json_get(doc, "spec"), NULL, "the study's SPEC", e);
    bool ok = s->submission && s->spec && (!s->external || make_external(s, e) == 0) &&
              dt_job_read(s->submission, &s->job, e) == 0;
    if (ok && cluster)
        ok = (s->cluster = dt_cluster_from_json(cluster, e)) != NULL;
    if (ok && allocation)
        ok = (s->allocation = dt_cluster_from_json(allocation, e)) != NULL;
    if (!ok || make_space(s, e) < 0) {
        dt_setup_free(s);
        return NULL;
    }
    return s;
}

void dt_setup_free(struct dt_setup *s)
{
    if (!s)
        return;
    dt_space_free(s->space);
    dt_spec_free(s->spec);
    dt_submission_free(s->submission);
    dt_cluster_free(s->cluster);
    dt_cluster_free(s->allocation);
    dt_cluster_free(s->asked);
    dt_job_free(&s->job);
    dt_conf_free(&s->conf);
    free(s->script);
    free(s->sbatch);
    free(s->slurm_conf);
    free(s->resume);
    free(s->history);
    free(s->applied);
    json_object_put(s->config);
    free(s->submitted);
    free(s);
}
