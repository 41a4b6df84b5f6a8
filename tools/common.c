#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLUSTER_MAX (64U << 20)

int fail_with(struct dt_error *e, int code)
{
    fprintf(stderr, "dt-tune: %s\n", e->text ? e->text : "unknown error");
    dt_error_clear(e);
    return code;
}

void print_either(char *text, struct json_object *o)
{
    char *line = text ? NULL : dt_json_text(o);
    printf("%s%s", text ? text : line, text ? "" : "\n");
    free(line);
    free(text);
    json_object_put(o);
}

int check_folder(const struct dt_setup *s, struct dt_error *e)
{
    const char *dir = s->resume ? s->resume : ".";
    if (access(dir, W_OK) == 0)
        return 0;
    int code = errno;
    char *path = realpath(dir, NULL);
    dt_fail(e, "%s: the study's records cannot be written there: %s; submit from a folder of yours",
            path ? path : dir, strerror(code));
    free(path);
    return -1;
}

void print_warnings(const struct dt_submission *s)
{
    for (size_t i = 0; i < s->warnings.n; i++)
        fprintf(stderr, "dt-tune: warning: %s\n", s->warnings.v[i]);
}

void warn_of_fixed_size(const struct dt_setup *s)
{
    int workers = dt_space_index(s->space, "workers");
    bool vary = workers >= 0 && dt_param_count(&s->space->params[workers]) > 1;
    char *warning = vary ? dt_submission_fixed_size(s->submission) : NULL;
    if (warning)
        fprintf(stderr, "dt-tune: warning: %s\n", warning);
    free(warning);
}

static struct json_object *read_json(const char *path, struct dt_error *e)
{
    char *text = dt_read_text(path, CLUSTER_MAX, e);
    struct json_object *o = text ? dt_json_parse(text, path, e) : NULL;
    free(text);
    return o;
}

struct dt_system *read_system(const char *path, struct dt_error *e)
{
    struct json_object *o = read_json(path, e);
    struct dt_system *s = NULL;
    if (o && !dt_json_get(o, "kinds"))
        dt_fail(e, "%s: a whole cluster is needed here, as dt-tune topo --save writes it", path);
    else if (o)
        s = dt_system_from_json(o, path, e);
    json_object_put(o);
    return s;
}

struct dt_cluster *read_cluster(const char *path, const struct dt_submission *sub,
                                struct dt_error *e)
{
    static const struct dt_submission nothing;
    struct json_object *o = read_json(path, e);
    struct dt_cluster *c = NULL;
    if (dt_json_get(o, "kinds")) { /* a whole cluster, as topo --save writes it */
        struct dt_system *s = dt_system_from_json(o, path, e);
        c = s ? dt_job_cluster(s, sub ? sub : &nothing, true, e) : NULL;
        dt_system_free(s);
    } else if (o && !(c = dt_cluster_from_json(o, e))) {
        dt_fail_at(e, "%s", path);
    }
    json_object_put(o);
    return c;
}

int sketch_read(struct sketch *k, const char *spec, const char *cluster, size_t tasks,
                struct dt_error *e)
{
    *k = (struct sketch){.job = {.tasks = tasks, .cpus = 1}, .spec = dt_spec_read(spec, e)};
    if (!k->spec || (cluster && !(k->cluster = read_cluster(cluster, NULL, e))) ||
        dt_natural_fill(k->spec, &k->job, k->cluster, e) < 0)
        return -1;
    k->source = (struct dt_space_source){k->spec, &k->job, k->cluster};
    k->space = dt_space_generate(&k->source, &k->why_layout, e);
    return k->space ? 0 : -1;
}

void sketch_free(struct sketch *k)
{
    dt_space_free(k->space);
    dt_cluster_free(k->cluster);
    dt_spec_free(k->spec);
}

static void add_word(struct dt_buf *b, const char *word)
{
    bool plain =
        *word &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%") ==
            strlen(word);
    dt_buf_add(b, plain ? "" : "'");
    for (; *word; word++)
        dt_buf_addf(b, *word == '\'' ? "'\\''" : "%c", *word);
    dt_buf_add(b, plain ? "" : "'");
}

char *command_text(const char *path, const struct dt_submission *s)
{
    struct dt_buf b = DT_BUF_INIT;
    add_word(&b, path);
    for (size_t i = 0; s && i < s->args.n; i++) {
        dt_buf_add(&b, " ");
        add_word(&b, s->args.v[i]);
    }
    return dt_buf_take(&b);
}

char *config_words(struct json_object *config)
{
    struct dt_buf b = DT_BUF_INIT;
    if (!json_object_is_type(config, json_type_object))
        return dt_xstrdup("-");
    json_object_object_foreach(config, key, value)
    {
        if (value)
            dt_buf_addf(&b, "%s%s=%s", b.len ? " " : "", key, json_object_get_string(value));
    }
    return dt_buf_take(&b);
}

char *sibling(const char *name, struct dt_error *e)
{
    char *dir = dt_self_dir(e), *path = dir ? dt_xasprintf("%s/%s", dir, name) : NULL;
    free(dir);
    return path;
}
