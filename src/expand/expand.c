#include "expand/expand.h"
#include "expand/carrier.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is collected for one script; the first error stops everything. */
struct header {
    struct dt_buf text;
    struct dt_error *e;
    bool failed;
};

static void put(struct header *h, const char *name, const char *value)
{
    if (h->failed)
        return;
    if (!value) {
        dt_buf_addf(&h->text, "#SBATCH --%s\n", name);
        return;
    }
    char *quoted = dt_sbatch_quote(value, h->e);
    if (!quoted) {
        dt_fail_at(h->e, "--%s", name);
        h->failed = true;
        return;
    }
    dt_buf_addf(&h->text, "#SBATCH --%s=%s\n", name, quoted);
    free(quoted);
}

static void putf(struct header *h, const char *name, const char *fmt, ...) DT_PRINTF(3, 4);
static void putf(struct header *h, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *value = dt_xvasprintf(fmt, ap);
    va_end(ap);
    put(h, name, value);
    free(value);
}

static const struct dt_option *given(const struct dt_trial_script *t, const char *name)
{
    return dt_submission_get(t->submission, name);
}

static void put_as_given(struct header *h, const struct dt_trial_script *t, const char *name)
{
    const struct dt_option *o = given(t, name);
    if (o)
        put(h, name, o->value);
}

/* Whether the configuration has a word of its own for it. */
static bool is_replaced(const struct dt_trial_script *t, const char *name)
{
    const struct dt_shape *s = t->shape;
    return !s->as_submitted && ((s->kinds && strcmp(name, "constraint") == 0) ||
                                (s->partition && strcmp(name, "partition") == 0));
}

/* The user's options of a class, each once, in force; but those which only a role with GPUs gets,
 * or which are replaced. */
static void put_class(struct header *h, const struct dt_trial_script *t, enum dt_option_class class)
{
    for (size_t i = 0; i < t->submission->n; i++) {
        const struct dt_option *o = &t->submission->options[i];
        enum dt_option_class c =
            o->def ? o->def->class : DT_OPT_TRIAL; /* foreign ones run with the job */
        bool by_role = strcmp(o->name, "gpu-bind") == 0 || strcmp(o->name, "gpu-freq") == 0 ||
                       is_replaced(t, o->name);
        if (c == class && !by_role && given(t, o->name) == o)
            put(h, o->name, o->value);
    }
}

/* GPUs that tasks share: as the user wrote it, or the same number of tasks on each. */
static void put_shared_gpus(struct header *h, const struct dt_trial_script *t, size_t workers,
                            size_t nodes)
{
    const struct dt_job *job = t->job;
    const char *type = job->gpu_type ? job->gpu_type : "", *colon = job->gpu_type ? ":" : "";
    size_t total = job->tasks_per_gpu ? (workers + job->tasks_per_gpu - 1) / job->tasks_per_gpu
                                      : job->gpus_total;
    if (!total) {
        put_as_given(h, t, "gpus-per-task");
        put_as_given(h, t, "gpus-per-node");
        put_as_given(h, t, "gpus-per-socket");
    } else if (nodes > 1) { /* Slurm refuses fewer GPUs than nodes */
        putf(h, "gpus-per-node", "%s%s%zu", type, colon, (total + nodes - 1) / nodes);
    } else if (job->tasks_per_gpu) {
        putf(h, "gpus", "%s%s%zu", type, colon, total);
    } else {
        put_as_given(h, t, "gpus");
    }
}

static void put_gpus(struct header *h, const struct dt_trial_script *t, const char *option,
                     size_t n)
{
    const char *type = t->job->gpu_type ? t->job->gpu_type : "",
               *colon = t->job->gpu_type ? ":" : "";
    if (!n)
        return;
    putf(h, option, "%s%s%zu", type, colon, n);
    if (!t->job->gpus_bound && strcmp(option, "gpus-per-task") == 0 && !given(t, "gpu-bind"))
        put(h, "gpu-bind", "none");
}

/* --gres, and what else goes with GPUs. `sharers`: tasks that share the GPUs they have; `nodes` 0:
 * unknown. */
static void put_gres(struct header *h, const struct dt_trial_script *t, const char *option,
                     size_t n, size_t sharers, size_t nodes)
{
    const struct dt_option *gres = given(t, "gres");
    bool workers = sharers || n;
    /* of a node: as the user asked for them */
    bool as_gres = n && gres && gres->value && strcmp(option, "gpus-per-node") == 0 &&
                   dt_gres_gpus(gres->value);
    if (!as_gres)
        put_gpus(h, t, option, n);
    if (sharers)
        put_shared_gpus(h, t, sharers, nodes);
    if (workers) {
        put_as_given(h, t, "gpu-bind");
        put_as_given(h, t, "gpu-freq");
    }
    if (gres && gres->value && sharers) {
        put(h, "gres", gres->value);
    } else if (gres && gres->value) {
        char *rest = dt_gres_others(gres->value);
        const char *type = t->job->gpu_type, *comma = *rest ? "," : "";
        if (as_gres)
            putf(h, "gres", "gpu:%s%s%zu%s%s", type ? type : "", type ? ":" : "", n, comma, rest);
        else if (*rest)
            put(h, "gres", rest);
        free(rest);
    }
}

/* An amount of memory in the unit that the user writes, where it is a whole number of those. */
static void put_amount(struct header *h, const struct dt_trial_script *t, const char *option,
                       uint64_t mib)
{
    static const char *const forms[] = {"mem", "mem-per-cpu", "mem-per-gpu"};
    uint64_t unit = 1;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const struct dt_option *o = given(t, forms[i]);
        const char *letter = o && o->value ? strpbrk(o->value, "gGtT") : NULL;
        unit = letter ? (*letter == 'g' || *letter == 'G' ? 1024 : 1024 * 1024) : unit;
    }
    unit = mib % unit ? 1 : unit;
    putf(h, option, "%" PRIu64 "%s", mib / unit, unit == 1 ? "M" : unit == 1024 ? "G" : "T");
}

/* Memory in one form only, as Slurm wants it: the tuned amount by CPU, or by GPU where the user
 * asks so, else the user's own option. */
static void put_memory(struct header *h, const struct dt_trial_script *t, const struct dt_role *r,
                       uint64_t mem)
{
    const struct dt_option *per_gpu = given(t, "mem-per-gpu");
    if (mem && per_gpu && r->gpus) {
        put_amount(h, t, "mem-per-gpu", (mem + r->gpus - 1) / r->gpus);
    } else if (mem) {
        put_amount(h, t, "mem-per-cpu", (mem + r->cpus - 1) / r->cpus);
    } else if (per_gpu && !r->gpus && !r->gpus_as_given &&
               t->job->mem_mib) { /* no GPUs: the same amount by CPU */
        put_amount(h, t, "mem-per-cpu", (t->job->mem_mib + t->job->cpus - 1) / t->job->cpus);
    } else {
        put_as_given(h, t, "mem");
        put_as_given(h, t, "mem-per-cpu");
        put_as_given(h, t, "mem-per-gpu");
    }
}

static void put_tmp(struct header *h, const struct dt_trial_script *t, uint64_t mib)
{
    if (mib)
        putf(h, "tmp", "%luM", (unsigned long)mib);
    else
        put_as_given(h, t, "tmp");
}

static void put_kind(struct header *h, const struct dt_trial_script *t, const char *constraint)
{
    if (t->shape->partition)
        put(h, "partition", t->shape->partition);
    if (constraint)
        put(h, "constraint", constraint);
}

/* Newer Slurm (24.11) lets a job of --overcommit with --cpus-per-task wait for ever; without, a
 * task has one. */
static void put_cpus(struct header *h, const struct dt_trial_script *t, size_t cpus)
{
    if (cpus != 1 || !t->job->overcommit)
        putf(h, "cpus-per-task", "%zu", cpus);
}

/* One role with a job or component to itself. */
static void put_role(struct header *h, const struct dt_trial_script *t, int role)
{
    static const char *const node_options[] = {"sockets-per-node", "cores-per-socket",
                                               "extra-node-info", "ntasks-per-core"};
    const struct dt_role *r = &t->shape->roles[role];
    put_kind(h, t, r->constraint);
    putf(h, "ntasks", "%zu", r->count);
    put_cpus(h, t, r->cpus);
    if (r->nodes_max > r->nodes)
        putf(h, "nodes", "%zu-%zu", r->nodes, r->nodes_max);
    else if (r->nodes)
        putf(h, "nodes", "%zu", r->nodes);
    if (r->per_node)
        putf(h, "ntasks-per-node", "%zu", r->per_node);
    for (size_t i = 0; i < sizeof(node_options) / sizeof(*node_options); i++)
        put_as_given(h, t, node_options[i]);
    if (role == DT_ROLE_WORKER)
        put_as_given(h, t, "ntasks-per-socket");
    put_memory(h, t, r, dt_role_mem_written(t->shape, t->job, role));
    put_tmp(h, t, r->tmp_mib);
    put_gres(h, t, "gpus-per-task", r->gpus, r->gpus_as_given ? r->count : 0, r->nodes);
}

/* Both roles side by side: every node gets the largest share that one of them needs, as CPUs of one
 * task; where tasks may be more than CPUs, as tasks. */
static void put_packed(struct header *h, const struct dt_trial_script *t)
{
    const struct dt_shape *s = t->shape;
    bool tuned_mem = s->roles[DT_ROLE_PS].mem_mib || s->roles[DT_ROLE_WORKER].mem_mib;
    struct dt_node_share share = dt_shape_share(s, t->job, s->nodes);
    char *constraint = dt_shape_constraint(s);
    put_kind(h, t, constraint);
    free(constraint);
    putf(h, "nodes", "%zu", s->nodes);
    if (t->job->overcommit) /* with it Slurm counts --ntasks-per-node against CPUs, but not --ntasks
                             */
        putf(h, "ntasks", "%zu", s->roles[DT_ROLE_PS].count + s->roles[DT_ROLE_WORKER].count);
    else
        put(h, "ntasks-per-node", "1");
    put_as_given(h, t, "sockets-per-node");
    put_as_given(h, t, "cores-per-socket");
    put_as_given(h, t, "extra-node-info");
    put_cpus(h, t, share.cpus);
    if (tuned_mem || (given(t, "mem-per-gpu") && share.mem_mib))
        put_amount(h, t, "mem", share.mem_mib);
    else
        put_memory(h, t, &(struct dt_role){.cpus = 1}, 0);
    put_tmp(h, t, share.tmp_mib);
    const struct dt_role *workers = &s->roles[DT_ROLE_WORKER];
    put_gres(h, t, "gpus-per-node", share.gpus, workers->gpus_as_given ? workers->count : 0,
             s->nodes);
}

static void put_size(struct header *h, const struct dt_trial_script *t)
{
    const struct dt_shape *s = t->shape;
    if (s->as_submitted) {
        put_class(h, t, DT_OPT_SHAPE);
        put_as_given(h, t, "gpu-bind");
        put_as_given(h, t, "gpu-freq");
    } else if (s->het) {
        put_role(h, t, DT_ROLE_PS);
        dt_buf_add(&h->text, "#SBATCH hetjob\n");
        put_class(h, t, DT_OPT_TRIAL);
        put_role(h, t, DT_ROLE_WORKER);
    } else if (s->nodes) {
        put_packed(h, t);
    } else {
        put_role(h, t, s->roles[DT_ROLE_WORKER].count ? DT_ROLE_WORKER : DT_ROLE_PS);
    }
}

/* Slurm takes 1024 characters, and what is added here must not make the difference. */
#define NAME_MAX_OURS 900

char *dt_trial_job_name(const struct dt_job *job, const char *study, int trial, int run)
{
    return dt_xasprintf("%.*s.dt-%s-%d-%d", NAME_MAX_OURS, job->name, study, trial, run);
}

static void put_own(struct header *h, const struct dt_trial_script *t)
{
    put_as_given(h, t, "input");
    if (!t->study) {
        static const char *const kept[] = {"output", "error", "open-mode", "requeue", "no-requeue"};
        put(h, "job-name", t->job->name);
        for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
            put_as_given(h, t, kept[i]);
        return;
    }
    char *name = dt_trial_job_name(t->job, t->study, t->trial, t->run);
    put(h, "job-name", name);
    free(name);
    /* In a file name % starts a replacement symbol and is written %%. */
    struct dt_buf path = DT_BUF_INIT;
    for (const char *s = t->dir; *s; s++)
        dt_buf_addf(&path, *s == '%' ? "%%%%" : "%c", *s);
    dt_buf_add(&path, "/output.log");
    put(h, "output", path.s);
    dt_buf_free(&path);
    put(h, "open-mode", "append");
    put(h, "no-requeue", NULL); /* a requeued trial would start again behind the tuner's back */
}

/* What dt-launch has to tell Slurm of a step of a role, as Slurm itself knows only the whole
 * allocation. */
static void add_share(struct json_object *o, const struct dt_trial_script *t, int role)
{
    struct dt_need needs[DT_ROLES];
    struct json_object *on = json_object_new_object();
    dt_shape_needs(t->shape, t->books, needs);
    if (needs[role].mem_per_cpu)
        json_object_object_add(o, "mem_per_cpu",
                               json_object_new_int64((int64_t)needs[role].mem_per_cpu));
    for (size_t i = 0; i < t->where->n; i++)
        json_object_object_add(on, t->books->v[t->where->v[i].node].name,
                               json_object_new_int64((int64_t)t->where->v[i].tasks[role]));
    json_object_object_add(o, "on", on);
}

static struct json_object *role_json(const struct dt_trial_script *t, int role)
{
    const struct dt_role *r = &t->shape->roles[role];
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "name", json_object_new_string(dt_role_names[role]));
    json_object_object_add(o, "count", json_object_new_int64((int64_t)r->count));
    json_object_object_add(o, "cpus", json_object_new_int64((int64_t)r->cpus));
    json_object_object_add(o, "gpus",
                           json_object_new_int64((int64_t)(r->gpus_as_given ? 1 : r->gpus)));
    if (r->gpus_as_given)
        json_object_object_add(o, "gpus_shared", json_object_new_boolean(true));
    if (t->job->gpu_type && r->gpus)
        json_object_object_add(o, "gpu_type", json_object_new_string(t->job->gpu_type));
    if (t->where)
        add_share(o, t, role);
    return o;
}

/* The text patterns, and the target whose first value must not be missed. */
static struct json_object *metrics_json(const struct dt_spec *spec)
{
    struct json_object *o = json_object_new_object(), *patterns = json_object_new_object();
    const struct dt_bound *target = &spec->target;
    for (size_t i = 0; i < spec->patterns.n; i++)
        json_object_object_add(patterns, spec->pattern_names.v[i],
                               json_object_new_string(spec->patterns.v[i]));
    json_object_object_add(o, "patterns", patterns);
    if (target->metric) {
        struct json_object *t = json_object_new_object();
        json_object_object_add(t, "metric", json_object_new_string(target->metric));
        json_object_object_add(t, target->at_least ? "at_least" : "at_most",
                               dt_json_number(target->value));
        json_object_object_add(o, "target", t);
    }
    return o;
}

static const char *layout_of(const struct dt_shape *s)
{
    return s->steps ? "steps" : s->het ? "het" : "packed";
}

/* What a trial that is no job of its own cannot learn from Slurm. */
static void add_steps(struct json_object *o, const struct dt_trial_script *t)
{
    char *name = dt_trial_job_name(t->job, t->study, t->trial, t->run);
    json_object_object_add(o, "name", json_object_new_string(name));
    json_object_object_add(o, "tuner_pid", json_object_new_int(t->tuner_pid));
    json_object_object_add(o, "gpus", json_object_new_boolean(dt_books_total(t->books).gpus > 0));
    if (t->books->node_gpus)
        json_object_object_add(o, "node_gpus", json_object_new_int64((int64_t)t->books->node_gpus));
    free(name);
}

/* What the tasks' samplers need to know. */
static struct json_object *monitor_json(const struct dt_trial_script *t)
{
    struct json_object *o = json_object_new_object(), *mem = json_object_new_object();
    struct dt_need needs[DT_ROLES];
    json_object_object_add(o, "period_s", dt_json_number(t->spec->monitor_period));
    if (t->where)
        dt_shape_needs(t->shape, t->books, needs);
    for (int r = 0; r < DT_ROLES; r++) {
        uint64_t mib = t->where ? needs[r].mem_per_cpu * needs[r].cpus
                                : dt_role_mem(t->shape, t->job, r);
        if (t->shape->roles[r].count && mib)
            json_object_object_add(mem, dt_role_names[r], json_object_new_int64((int64_t)mib));
    }
    json_object_object_add(o, "mem_mib", mem);
    return o;
}

/* Options of the job that say themselves where tasks sit. */
static bool is_bound_by_user(const struct dt_trial_script *t)
{
    static const char *const names[] = {"hint",
                                        "mem-bind",
                                        "distribution",
                                        "gpu-bind",
                                        "threads-per-core",
                                        "ntasks-per-core",
                                        "ntasks-per-socket",
                                        "extra-node-info"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (given(t, names[i]))
            return true;
    return false;
}

/* The job as submitted is left to Slurm as it would be without us. */
static void add_bind(struct json_object *o, const struct dt_trial_script *t)
{
    bool off = t->spec && t->spec->no_bind;
    if (off || t->shape->as_submitted || is_bound_by_user(t))
        json_object_object_add(o, "bind", json_object_new_string("none"));
    else if (t->spec && t->spec->topology)
        json_object_object_add(o, "topology", json_object_new_string(t->spec->topology));
}

/* What dt-launch needs to know; see launch.h. */
static char *plan_text(const struct dt_trial_script *t)
{
    struct json_object *o = json_object_new_object(), *roles = json_object_new_array();
    struct json_object *config = dt_config_to_json(t->space, t->x),
                       *params = json_object_new_object();
    json_object_object_add(o, "version", json_object_new_int(1));
    if (t->study) {
        json_object_object_add(o, "study", json_object_new_string(t->study));
        json_object_object_add(o, "trial", json_object_new_int(t->trial));
        json_object_object_add(o, "run", json_object_new_int(t->run));
    }
    if (t->dir)
        json_object_object_add(o, "dir", json_object_new_string(t->dir));
    if (t->tuner_job)
        json_object_object_add(o, "tuner_job", json_object_new_int64(t->tuner_job));
    json_object_object_add(o, "layout", json_object_new_string(layout_of(t->shape)));
    if (t->where)
        add_steps(o, t);
    for (int r = 0; r < DT_ROLES; r++)
        if (t->shape->roles[r].count)
            json_object_array_add(roles, role_json(t, r));
    json_object_object_add(o, "roles", roles);
    if (t->coordinator)
        json_object_object_add(o, "coordinator", json_object_new_string(t->coordinator));
    json_object_object_add(o, "gpu_bind",
                           json_object_new_string(t->job->gpus_bound ? "task" : "none"));
    add_bind(o, t);
    if (t->learn)
        json_object_object_add(o, "learn", json_object_new_boolean(true));
    json_object_object_add(o, "submitted_tasks", json_object_new_int64((int64_t)t->job->tasks));
    for (size_t i = 0; i < t->space->n; i++) {
        const struct dt_param *p = &t->space->params[i];
        if (p->hyper && !isnan(t->x[i]))
            json_object_object_add(params, p->name, json_object_get(dt_json_get(config, p->name)));
    }
    if (t->spec && t->spec->patterns.n)
        json_object_object_add(o, "metrics", metrics_json(t->spec));
    if (t->study && t->spec && t->spec->monitor_period > 0 &&
        t->spec->monitor_source != DT_MONITOR_SLURM)
        json_object_object_add(o, "monitor", monitor_json(t));
    json_object_object_add(o, "params", params);
    json_object_object_add(o, "config", config);
    char *text = dt_json_text(o);
    json_object_put(o);
    return text;
}

/* How a role is started, in words: "1 on h1, 2 on h2". */
static void put_where(struct header *h, const struct dt_trial_script *t, int role)
{
    const char *sep = " ";
    for (size_t i = 0; t->where && i < t->where->n; i++) {
        const struct dt_place *part = &t->where->v[i];
        if (part->tasks[role])
            dt_buf_addf(&h->text, "%s%zu on %s", sep, part->tasks[role],
                        t->books->v[part->node].name);
        sep = part->tasks[role] ? ", " : sep;
    }
}

static void put_steps(struct header *h, const struct dt_trial_script *t)
{
    dt_buf_add(&h->text,
               "# not for sbatch: the tuner starts it in its own allocation, by dt-launch "
               "--carrier;\n# each role is a step: srun --exact, with its nodes, CPUs, "
               "memory and GPUs\n");
    for (int r = 0; r < DT_ROLES; r++) {
        const struct dt_role *role = &t->shape->roles[r];
        if (!role->count)
            continue;
        dt_buf_addf(&h->text, "# %s: %zu x %zu CPU%s", dt_role_names[r], role->count, role->cpus,
                    role->cpus == 1 ? "" : "s");
        if (role->gpus)
            dt_buf_addf(&h->text, ", %zu GPU%s", role->gpus, role->gpus == 1 ? "" : "s");
        if (t->where)
            dt_buf_add(&h->text, ";");
        put_where(h, t, r);
        dt_buf_add(&h->text, "\n");
    }
}

static void put_options(struct header *h, const struct dt_trial_script *t)
{
    /* sbatch looks for #PBS and #BSUB lines in all of a script, even behind its first command */
    if (!given(t, "ignore-pbs"))
        put(h, "ignore-pbs", NULL);
    put_own(h, t);
    put_class(h, t, DT_OPT_TRIAL);
    put_class(h, t, DT_OPT_LEADER);
    put_size(h, t);
}

char *dt_expand(const struct dt_trial_script *t, struct dt_error *e)
{
    struct header h = {DT_BUF_INIT, e, false};
    char *config = dt_config_text(t->space, t->x);
    dt_buf_addf(&h.text, "# %s\n", config);
    free(config);
    if (t->shape->steps)
        put_steps(&h, t);
    else
        put_options(&h, t);
    char *text = NULL;
    if (!h.failed) {
        char *plan = plan_text(t);
        const char *argv[] = {t->launch, NULL};
        text = dt_carrier_build(h.text.s, argv, plan, t->script);
        if (!text)
            dt_fail(e, "the trial's script cannot be built (out of memory)");
        free(plan);
    }
    dt_buf_free(&h.text);
    return text;
}
