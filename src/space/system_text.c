/* A system as a picture for people. */
#include "space/system.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 100

/* Where the text may be broken so that `room` columns suffice: behind a blank or a comma, else
 * anywhere. */
static size_t break_at(const char *text, size_t room)
{
    size_t n = strlen(text);
    if (n <= room)
        return n;
    for (size_t i = room; i > room / 3; i--)
        if (text[i - 1] == ' ' || text[i - 1] == ',')
            return i;
    return room;
}

/* Lines of at most 100 columns, the first indented by `first`, the others by `rest`. Takes the text
 * over. */
static void add_lines(struct dt_buf *b, size_t first, size_t rest, char *text)
{
    size_t indent = first;
    for (const char *p = text; *p; indent = rest) {
        size_t n = break_at(p, COLUMNS - indent), shown = n;
        while (shown && p[shown - 1] == ' ')
            shown--;
        dt_buf_addf(b, "%*s%.*s\n", (int)indent, "", (int)shown, p);
        p += n;
    }
    free(text);
}

/* "512 MiB", "1.5 TiB". */
static char *size_text(uint64_t mib)
{
    static const char *const units[] = {"MiB", "GiB", "TiB", "PiB"};
    double x = (double)mib;
    size_t unit = 0;
    for (; x >= 1024 && unit < 3; unit++)
        x /= 1024;
    return dt_xasprintf(x == floor(x) ? "%.0f %s" : "%.1f %s", x, units[unit]);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- nodes ---- */

static char *node_text(const struct dt_node_class *k)
{
    struct dt_buf b = DT_BUF_INIT;
    char *mem = size_text(k->mem_mib), *tmp = size_text(k->tmp_mib);
    dt_buf_addf(&b, "%zu CPU%s", k->cpus, plural(k->cpus));
    if (k->sockets && k->cores)
        dt_buf_addf(&b, " (%zu socket%s x %zu core%s x %zu thread%s)", k->sockets,
                    plural(k->sockets), k->cores, plural(k->cores), k->threads, plural(k->threads));
    dt_buf_addf(&b, ", %s", mem);
    if (k->tmp_mib)
        dt_buf_addf(&b, ", %s of disk", tmp);
    if (k->gres && *k->gres)
        dt_buf_addf(&b, ", %s", k->gres);
    else if (k->gpus)
        dt_buf_addf(&b, ", %zu GPU%s", k->gpus, plural(k->gpus));
    free(mem);
    free(tmp);
    return dt_buf_take(&b);
}

static void add_kind(struct dt_buf *b, const struct dt_node_kind *k)
{
    struct dt_buf more = DT_BUF_INIT;
    char *node = node_text(&k->size);
    add_lines(b, 2, 8, dt_xasprintf("%zu node%s, each %s", k->total, plural(k->total), node));
    free(node);
    dt_buf_addf(&more, "partitions %s", *k->partitions ? k->partitions : "none");
    if (k->size.features && *k->size.features)
        dt_buf_addf(&more, "; features %s", k->size.features);
    if (k->size.weight > 1)
        dt_buf_addf(&more, "; weight %zu", k->size.weight);
    add_lines(b, 6, 8, dt_buf_take(&more));
    for (size_t i = 0; i < k->ngroups; i++)
        add_lines(b, 6, 8,
                  dt_xasprintf("%zu %s%s: %s", k->groups[i].count, k->groups[i].state,
                               k->groups[i].usable ? "" : " (not usable)", k->groups[i].names));
}

/* ---- partitions ---- */

static void add_list(struct dt_strv *words, const char *what, const char *names)
{
    if (names)
        dt_strv_addf(words, "%s %s", what, names);
}

static void add_memory(struct dt_strv *words, const char *what, uint64_t mib, const char *of)
{
    char *size = size_text(mib);
    if (mib)
        dt_strv_addf(words, "%s %s a %s", what, size, of);
    free(size);
}

static char *partition_text(const struct dt_partition_limits *l)
{
    struct dt_strv words = DT_STRV_INIT;
    char *time = dt_format_duration(isfinite(l->max_time) ? l->max_time : 0);
    if (l->max_nodes)
        dt_strv_addf(&words, "at most %zu node%s a job", l->max_nodes, plural(l->max_nodes));
    if (l->min_nodes)
        dt_strv_addf(&words, "at least %zu nodes", l->min_nodes);
    if (isfinite(l->max_time))
        dt_strv_addf(&words, "at most %s", time);
    if (l->max_cpus_per_node)
        dt_strv_addf(&words, "at most %zu CPUs a node", l->max_cpus_per_node);
    add_memory(&words, "at most", l->max_mem_per_cpu, "CPU");
    add_memory(&words, "at most", l->max_mem_per_node, "node");
    add_memory(&words, "unless asked for", l->def_mem_per_cpu, "CPU");
    add_memory(&words, "unless asked for", l->def_mem_per_node, "node");
    add_memory(&words, "unless asked for", l->def_mem_per_gpu, "GPU");
    if (l->def_cpus_per_gpu)
        dt_strv_addf(&words, "unless asked for %zu CPUs a GPU", l->def_cpus_per_gpu);
    if (l->exclusive)
        dt_strv_addf(&words, "whole nodes only");
    if (l->reserved)
        dt_strv_addf(&words, "only with a reservation");
    if (l->root_only)
        dt_strv_addf(&words, "only for root");
    add_list(&words, "accounts", l->allow_accounts);
    add_list(&words, "not accounts", l->deny_accounts);
    add_list(&words, "QOS", l->allow_qos);
    add_list(&words, "not QOS", l->deny_qos);
    add_list(&words, l->foreign ? "groups that you are not in" : "groups", l->allow_groups);
    add_list(&words, "limits of QOS", l->qos);
    char *text = dt_strv_join(&words, "; ");
    dt_strv_free(&words);
    free(time);
    return text;
}

static void add_partition(struct dt_buf *b, const struct dt_system *s, const struct dt_partition *p)
{
    size_t all = 0, usable = 0;
    for (size_t i = 0; i < s->nkinds; i++) {
        if (!dt_kind_in(&s->kinds[i], p->name))
            continue;
        all += s->kinds[i].total;
        usable += s->kinds[i].size.count;
    }
    char *limits = partition_text(&p->limits);
    add_lines(b, 2, 8,
              dt_xasprintf("%s%s: %s, %zu of %zu node%s usable%s%s", p->name,
                           p->preset ? " (default)" : "", p->state, usable, all, plural(all),
                           *limits ? "; " : "", limits));
    free(limits);
}

/* ---- switches ---- */

static size_t depth(const struct dt_system *s)
{
    size_t most = 0;
    for (size_t i = 0; i < s->nswitches; i++)
        most = s->switches[i].level > most ? s->switches[i].level : most;
    return most;
}

static bool hangs_on(const struct dt_switch *w, const char *name)
{
    struct dt_strv below = DT_STRV_INIT;
    bool found = false;
    if (w->switches)
        dt_hostlist_expand(w->switches, &below, NULL);
    for (size_t i = 0; i < below.n; i++)
        found |= strcmp(below.v[i], name) == 0;
    dt_strv_free(&below);
    return found;
}

static void add_switch(struct dt_buf *b, const struct dt_system *s, const struct dt_switch *w,
                       size_t indent)
{
    add_lines(b, indent, indent + 6,
              dt_xasprintf("%s%s%s", w->name, w->level ? "" : ": ",
                           w->level || !w->nodes ? "" : w->nodes));
    for (size_t i = 0; i < s->nswitches && w->level; i++)
        if (s->switches[i].level + 1 == w->level && hangs_on(w, s->switches[i].name))
            add_switch(b, s, &s->switches[i], indent + 2);
}

static void add_switches(struct dt_buf *b, const struct dt_system *s)
{
    size_t top = depth(s);
    for (size_t i = 0; i < s->nswitches; i++) {
        bool below = false;
        for (size_t j = 0; j < s->nswitches; j++)
            below |= s->switches[j].level == s->switches[i].level + 1 &&
                     hangs_on(&s->switches[j], s->switches[i].name);
        if (s->switches[i].level == top || !below)
            add_switch(b, s, &s->switches[i], 2);
    }
}

/* ---- limits ---- */

static void add_amounts(struct dt_strv *words, const struct dt_amounts *a, const char *of)
{
    for (size_t i = 0; i < a->n; i++) {
        bool mem = strcmp(a->v[i].name, "mem") == 0;
        char *size = mem ? size_text(a->v[i].n) : dt_xasprintf("%" PRIu64, a->v[i].n);
        dt_strv_addf(words, "%s %s %s", size, mem ? "of memory" : a->v[i].name, of);
        free(size);
    }
}

static void add_number(struct dt_strv *words, uint64_t n, const char *of)
{
    if (n != DT_NO_LIMIT)
        dt_strv_addf(words, "%" PRIu64 " %s", n, of);
}

static void add_limits(struct dt_buf *b, const struct dt_limits *l)
{
    struct dt_strv words = DT_STRV_INIT;
    add_amounts(&words, &l->per_job, "a job");
    add_amounts(&words, &l->per_node, "a node");
    add_amounts(&words, &l->per_user, "a user");
    add_amounts(&words, &l->group, "in all");
    char *time = dt_format_duration(isfinite(l->max_time) ? l->max_time : 0);
    if (isfinite(l->max_time))
        dt_strv_addf(&words, "%s a job", time);
    free(time);
    add_number(&words, l->jobs, "jobs of a user at a time");
    add_number(&words, l->submitted, "jobs of a user, running or waiting");
    add_number(&words, l->group_jobs, "jobs at a time in all");
    add_number(&words, l->group_submitted, "jobs in all, running or waiting");
    char *all = dt_strv_join(&words, "; ");
    if (words.n)
        add_lines(b, 2, 8,
                  dt_xasprintf("%s: at most %s%s", l->who, all,
                               l->refuses ? "; a job beyond that is refused" : ""));
    free(all);
    dt_strv_free(&words);
}

/* ---- all of it ---- */

static void add_head(struct dt_buf *b, const struct dt_system *s)
{
    const struct dt_scheduling *how = &s->scheduling;
    size_t nodes = 0, usable = 0;
    for (size_t i = 0; i < s->nkinds; i++) {
        nodes += s->kinds[i].total;
        usable += s->kinds[i].size.count;
    }
    add_lines(
        b, 0, 8,
        dt_xasprintf(
            "cluster %s, Slurm %s: %zu node%s, %zu of them usable, of %zu kind%s; jobs get %s%s%s; %s",
            s->name ? s->name : "?", s->version ? s->version : "?", nodes, plural(nodes), usable,
            s->nkinds, plural(s->nkinds),
            !how->known    ? "what select/linear gives"
            : how->sockets ? "whole sockets"
            : how->cores   ? "whole cores"
                           : "single CPUs",
            how->known && how->memory ? " and memory" : "",
            how->enforced ? "; limits of partitions are enforced" : "",
            s->backfill ? "heterogeneous jobs can run"
                        : "no heterogeneous jobs, for want of backfill"));
}

char *dt_system_text(const struct dt_system *s)
{
    struct dt_buf b = DT_BUF_INIT, limits = DT_BUF_INIT;
    add_head(&b, s);
    dt_buf_add(&b, "\nNODES\n");
    for (size_t i = 0; i < s->nkinds; i++)
        add_kind(&b, &s->kinds[i]);
    dt_buf_add(&b, "\nPARTITIONS\n");
    for (size_t i = 0; i < s->npartitions; i++)
        add_partition(&b, s, &s->partitions[i]);
    dt_buf_add(&b, s->nswitches ? "\nSWITCHES\n" : "");
    add_switches(&b, s);
    dt_buf_add(&b, s->licenses.n ? "\nLICENCES\n" : "");
    for (size_t i = 0; i < s->licenses.n; i++)
        add_lines(&b, 2, 8,
                  dt_xasprintf("%" PRIu64 " %s", s->licenses.v[i].n, s->licenses.v[i].name));
    for (size_t i = 0; i < s->nlimits; i++)
        add_limits(&limits, &s->limits[i]);
    if (limits.len)
        dt_buf_addf(&b, "\nLIMITS THAT BIND YOU\n%s", limits.s);
    dt_buf_free(&limits);
    return dt_buf_take(&b);
}
