#include "spec/submission_private.h"
#include "util/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the environment ---- */

/* Variables in sbatch's order where it matters: a later one of the same option wins. */
static const struct {
    const char *var, *name;
    bool after; /* read after the option's own SBATCH_ variable, else before */
} more_vars[] = {
    {"SLURM_CLUSTERS", "clusters", true},
    {"SLURM_HINT", "hint", false},
};

/* A flag's variable counts as given when empty, "yes" or a number other than 0; else it takes the
 * flag back. */
static bool flag_is_on(const char *text)
{
    char *end;
    return !*text || strcasecmp(text, "yes") == 0 || (strtol(text, &end, 10) && !*end);
}

static void remove_option(struct dt_option_list *l, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->v[i].name, name) == 0) {
            free(l->v[i].name);
            free(l->v[i].value);
        } else {
            l->v[kept++] = l->v[i];
        }
    }
    l->n = kept;
}

static struct dt_option *last_option(struct dt_option_list *l, const char *name)
{
    for (size_t i = l->n; i-- > 0;)
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i];
    return NULL;
}

/* Several --mail-type add up in sbatch before 25.05; a NONE among them adds nothing and takes
 * nothing away. */
static char *join_mail(const char *old, const char *new)
{
    if (strcasestr(new, "NONE"))
        return dt_xstrdup(old);
    if (strcasestr(old, "NONE"))
        return dt_xstrdup(new);
    return dt_xasprintf("%s,%s", old, new);
}

/* Adds an option that comes later than all in the list. */
static void merge_option(struct dt_option_list *l, const struct dt_option *o)
{
    struct dt_option copy = *o;
    char *joined = NULL;
    for (const char *const *rival = dt_sbatch_rivals(o->name); *rival; rival++)
        if (strcmp(*rival, o->name) != 0)
            remove_option(l, *rival);
    bool adds_up = !DT_SLURM_AT_LEAST(25, 5);
    const struct dt_option *old =
        adds_up && strcmp(o->name, "mail-type") == 0 ? last_option(l, o->name) : NULL;
    if (old)
        copy.value = joined = join_mail(old->value, o->value);
    dt_option_list_add(l, &copy);
    free(joined);
}

static int merge_var(struct dt_option_list *l, const struct dt_sbatch_option *def, const char *var,
                     char *const *env, struct dt_error *e)
{
    const char *value = dt_env_get(env, var);
    if (!value)
        return 0;
    if (def->has_arg == no_argument && !flag_is_on(value)) {
        remove_option(l, def->name);
        for (const char *const *rival = dt_sbatch_rivals(def->name); *rival; rival++)
            remove_option(l, *rival);
        return 0;
    }
    if (def->class == DT_OPT_REFUSE)
        return dt_fail(e, "%s: --%s: %s", var, def->name, def->why);
    bool given = def->has_arg == required_argument || (def->has_arg == optional_argument && *value);
    const char *fault = given ? dt_sbatch_value_fault(def, value) : NULL;
    if (fault) {
        char *shown = dt_printable(value);
        dt_fail(e, "%s=%s: %s", var, shown, fault);
        free(shown);
        return -1;
    }
    struct dt_option o = {.def = def,
                          .name = (char *)def->name,
                          .value = given ? (char *)value : NULL,
                          .origin = DT_FROM_ENV,
                          .var = var};
    merge_option(l, &o);
    return 0;
}

/* SBATCH_REQ_SWITCH and SBATCH_WAIT4SWITCH are the two parts of --switches=COUNT@TIME. */
static int merge_switches(struct dt_option_list *l, char *const *env, struct dt_error *e)
{
    const char *count = dt_env_get(env, "SBATCH_REQ_SWITCH"),
               *wait = dt_env_get(env, "SBATCH_WAIT4SWITCH");
    const struct dt_option *old = last_option(l, "switches");
    const struct dt_sbatch_option *def = dt_sbatch_option_find("switches");
    if (!count && !wait)
        return 0;
    if (!count && !old)
        return 0; /* a waiting time alone asks for nothing */
    const char *at = old ? strchr(old->value, '@') : NULL;
    char *n = count ? dt_xstrdup(count) : dt_xstrndup(old->value, strcspn(old->value, "@"));
    char *value = wait ? dt_xasprintf("%s@%s", n, wait) : dt_xasprintf("%s%s", n, at ? at : "");
    const char *fault = dt_sbatch_value_fault(def, value);
    struct dt_option o = {.def = def, .name = "switches", .value = value, .origin = DT_FROM_ENV};
    o.var = count ? "SBATCH_REQ_SWITCH" : "SBATCH_WAIT4SWITCH";
    if (fault)
        dt_fail(e, "%s=%s: %s", o.var, value, fault);
    else
        merge_option(l, &o);
    free(n);
    free(value);
    return fault ? -1 : 0;
}

static int merge_more_vars(struct dt_option_list *l, const struct dt_sbatch_option *def, bool after,
                           char *const *env, struct dt_error *e)
{
    for (size_t i = 0; i < sizeof(more_vars) / sizeof(*more_vars); i++)
        if (more_vars[i].after == after && strcmp(more_vars[i].name, def->name) == 0 &&
            merge_var(l, def, more_vars[i].var, env, e) < 0)
            return -1;
    return 0;
}

static int merge_environment(struct dt_option_list *l, char *const *env, struct dt_error *e)
{
    for (const struct dt_sbatch_option *o = dt_sbatch_options; o->name; o++) {
        if (merge_more_vars(l, o, false, env, e) < 0 ||
            (o->env && merge_var(l, o, o->env, env, e) < 0) ||
            merge_more_vars(l, o, true, env, e) < 0)
            return -1;
    }
    return merge_switches(l, env, e);
}

/* ---- rules over all options ---- */

static const char *const memory[] = {"mem", "mem-per-cpu", "mem-per-gpu"};

/* One memory form may be given; one of script or command line puts those of the environment out of
 * force. */
static int check_memory(struct dt_submission *s, struct dt_option_list *l, struct dt_error *e)
{
    const struct dt_option *given[3];
    size_t n = 0, from_env = 0;
    for (size_t i = 0; i < 3; i++)
        if ((given[n] = last_option(l, memory[i])))
            from_env += given[n++]->origin == DT_FROM_ENV;
    if (n < 2)
        return 0;
    if (n - from_env == 1) {
        for (size_t i = 0; i < 3; i++) {
            const struct dt_option *o = last_option(l, memory[i]);
            if (o && o->origin == DT_FROM_ENV)
                remove_option(l, memory[i]);
        }
        return 0;
    }
    const struct dt_option *two[2] = {NULL, NULL};
    for (size_t i = 0; i < n; i++)
        if (n == from_env || given[i]->origin != DT_FROM_ENV)
            two[two[0] != NULL] = given[i];
    char *first = dt_option_place(s, two[0]), *second = dt_option_place(s, two[1]);
    dt_fail(e, "%s: --%s and --%s (%s) exclude each other: keep one of them", second, two[1]->name,
            two[0]->name, first);
    free(first);
    free(second);
    return -1;
}

static int check_pbs(const struct dt_submission *s, struct dt_option_list *l, struct dt_error *e)
{
    if (last_option(l, "ignore-pbs") || last_option(l, "wrap"))
        return 0;
    int line = dt_directives_foreign(s->script, s->script_len);
    if (!line)
        return 0;
    return dt_fail(e,
                   "%s:%d: sbatch would translate this #PBS or #BSUB line and change the job: "
                   "write it as #SBATCH, or "
                   "add the line #SBATCH --ignore-pbs",
                   s->script_name, line);
}

/* ---- reading ---- */

/* sbatch drops every ":" before it looks for the script; one before the script begins another
 * component. */
static int drop_colons(char *const *argv, struct dt_strv *words, size_t *first_colon)
{
    size_t n = 0;
    *first_colon = SIZE_MAX;
    for (; *argv; argv++) {
        if (strcmp(*argv, ":") != 0) {
            dt_strv_add(words, *argv);
            n++;
        } else if (*first_colon == SIZE_MAX) {
            *first_colon = n; /* the word that followed it */
        }
    }
    return n ? 0 : -1;
}

static int read_argv(struct dt_submission *s, struct dt_option_reader *r, char *const *argv,
                     struct dt_option_list *l, struct dt_error *e)
{
    struct dt_strv words = DT_STRV_INIT;
    struct dt_word_source from = {.origin = DT_FROM_ARGV};
    size_t colon;
    int rest = 0;
    if (drop_colons(argv, &words, &colon) < 0)
        return dt_fail(e, "command line: it is empty: begin it with the program's name");
    int rc = dt_option_reader_parse(r, (int)words.n, words.v, &from, l, &rest, &s->warnings, e);
    if (rc == 0 && colon <= (size_t)rest && colon != SIZE_MAX)
        rc = dt_fail(e, "command line: a \":\" begins another component: dt-tune makes the "
                        "heterogeneous job itself: "
                        "give one job with --dt-ps and --dt-workers");
    if (rc == 0)
        dt_strv_addv(&s->args, words.v + rest); /* the script's name first, for now */
    dt_strv_free(&words);
    return rc;
}

static bool asks_for_help(struct dt_option_list *l)
{
    return last_option(l, "help") || last_option(l, "usage") || last_option(l, "version");
}

static int read_script(struct dt_submission *s, struct dt_option_list *argv, char *const *env,
                       int stdin_fd, struct dt_error *e)
{
    const struct dt_option *wrap = last_option(argv, "wrap");
    if (wrap && s->args.n)
        return dt_fail(e,
                       "command line: \"%s\": a script or arguments cannot stand beside --wrap: "
                       "put them into it",
                       s->args.v[0]);
    if (wrap) {
        dt_batch_script_wrap(s, wrap->value);
        return 0;
    }
    if (!s->args.n)
        return dt_batch_script_stdin(s, stdin_fd, e);
    const struct dt_option *chdir = last_option(argv, "chdir");
    int rc = dt_batch_script_find(s, s->args.v[0], chdir ? chdir->value : NULL, env, e);
    free(s->args.v[0]);
    memmove(s->args.v, s->args.v + 1, s->args.n-- * sizeof(*s->args.v));
    return rc;
}

static int read_all(struct dt_submission *s, struct dt_option_reader *r, char *const *argv,
                    char *const *env, int stdin_fd, struct dt_option_list *l,
                    struct dt_option_list *last, struct dt_error *e)
{
    if (read_argv(s, r, argv, last, e) < 0)
        return -1;
    if (!asks_for_help(last)) {
        if (read_script(s, last, env, stdin_fd, e) < 0)
            return -1;
        struct dt_option_list script = {0};
        int rc = last_option(last, "wrap")
                     ? 0 /* sbatch looks for no #SBATCH in it */
                     : dt_option_reader_script(r, s->script, s->script_len, s->script_name, &script,
                                               &s->warnings, e);
        for (size_t i = 0; i < script.n; i++)
            merge_option(l, &script.v[i]);
        dt_option_list_free(&script);
        if (rc < 0)
            return -1;
    }
    if (merge_environment(l, env, e) < 0)
        return -1;
    for (size_t i = 0; i < last->n; i++)
        merge_option(l, &last->v[i]);
    if (asks_for_help(last))
        return 0;
    return check_memory(s, l, e) < 0 || check_pbs(s, l, e) < 0 ? -1 : 0;
}

struct dt_submission *dt_submission_read(char *const *argv, char *const *env, int stdin_fd,
                                         const char *sbatch, struct dt_error *e)
{
    struct dt_submission *s = dt_xcalloc(1, sizeof(*s));
    struct dt_option_reader r = {.sbatch = sbatch, .env = env};
    struct dt_option_list all = {0}, last = {0};
    int rc = read_all(s, &r, argv, env, stdin_fd, &all, &last, e);
    dt_option_list_free(&last);
    dt_option_reader_free(&r);
    s->options = all.v;
    s->n = all.n;
    if (rc == 0)
        return s;
    dt_submission_free(s);
    return NULL;
}

void dt_submission_free(struct dt_submission *s)
{
    if (!s)
        return;
    struct dt_option_list l = {s->options, s->n};
    dt_option_list_free(&l);
    dt_strv_free(&s->args);
    dt_strv_free(&s->warnings);
    free(s->script_name);
    free(s->script_path);
    free(s->script);
    free(s);
}

/* ---- questions ---- */

const struct dt_option *dt_submission_get(const struct dt_submission *s, const char *name)
{
    struct dt_option_list l = {s->options, s->n};
    const struct dt_sbatch_option *def = dt_sbatch_option_find(name);
    return last_option(&l, def && def->same_as ? def->same_as : name);
}

const char *dt_submission_value(const struct dt_submission *s, const char *name)
{
    const struct dt_option *o = dt_submission_get(s, name);
    return o ? o->value : NULL;
}

char *dt_option_place(const struct dt_submission *s, const struct dt_option *o)
{
    if (o->origin == DT_FROM_SCRIPT)
        return dt_xasprintf("%s:%d", s->script_name, o->line);
    if (o->origin == DT_FROM_ENV)
        return dt_xstrdup(o->var);
    return dt_xasprintf("--%s", o->name);
}

char *dt_option_title(const struct dt_submission *s, const struct dt_option *o)
{
    char *place = dt_option_place(s, o);
    char *title =
        o->origin == DT_FROM_ARGV ? dt_xstrdup(place) : dt_xasprintf("%s: --%s", place, o->name);
    free(place);
    return title;
}

int dt_fail_at_option(const struct dt_submission *s, const struct dt_option *o, struct dt_error *e)
{
    char *title = dt_option_title(s, o);
    dt_fail_at(e, "%s", title);
    free(title);
    return -1;
}

/* ---- JSON ---- */

static bool in_force(const struct dt_submission *s, const struct dt_option *o)
{
    return strcmp(o->name, "dt-param") == 0 || dt_submission_get(s, o->name) == o;
}

struct json_object *dt_submission_to_json(const struct dt_submission *s)
{
    struct json_object *out = json_object_new_object(), *options = json_object_new_array();
    struct json_object *args = json_object_new_array();
    for (size_t i = 0; i < s->n; i++) {
        const struct dt_option *o = &s->options[i];
        if (!in_force(s, o))
            continue;
        struct json_object *pair = json_object_new_array();
        json_object_array_add(pair, json_object_new_string(o->name));
        json_object_array_add(pair, o->value ? json_object_new_string(o->value) : NULL);
        json_object_array_add(options, pair);
    }
    for (size_t i = 0; i < s->args.n; i++)
        json_object_array_add(args, json_object_new_string(s->args.v[i]));
    json_object_object_add(out, "options", options);
    json_object_object_add(out, "args", args);
    if (s->script_name)
        json_object_object_add(out, "script_name", json_object_new_string(s->script_name));
    if (s->script_path)
        json_object_object_add(out, "script_path", json_object_new_string(s->script_path));
    return out;
}

static bool is_string(struct json_object *o)
{
    return o && json_object_is_type(o, json_type_string);
}

static int option_from_json(struct dt_option_list *l, struct json_object *pair, struct dt_error *e)
{
    struct json_object *name = NULL, *value = NULL;
    if (dt_json_count(pair) == 2) {
        name = dt_json_at(pair, 0);
        value = dt_json_at(pair, 1);
    }
    if (!is_string(name) || (value && !is_string(value)))
        return dt_fail(e, "submission.options: an entry is no [NAME, VALUE or null]: the study is "
                          "damaged, submit anew");
    const char *text = json_object_get_string(name);
    struct dt_option o = {.def = dt_sbatch_option_find(text),
                          .name = (char *)text,
                          .value = (char *)(value ? json_object_get_string(value) : NULL),
                          .origin = DT_FROM_ARGV};
    if (o.def && o.def->has_arg == required_argument && !o.value)
        return dt_fail(e, "submission.options: %s has no value: the study is damaged, submit anew",
                       text);
    dt_option_list_add(l, &o);
    return 0;
}

struct dt_submission *dt_submission_from_json(struct json_object *o, struct dt_error *e)
{
    struct json_object *options = dt_json_get(o, "options"), *args = dt_json_get(o, "args");
    if (!options || !json_object_is_type(options, json_type_array) ||
        (args && !json_object_is_type(args, json_type_array))) {
        dt_fail(
            e, "submission: \"options\" or \"args\" is no list: the study is damaged, submit anew");
        return NULL;
    }
    struct dt_submission *s = dt_xcalloc(1, sizeof(*s));
    struct dt_option_list l = {0};
    const char *name = dt_json_str(o, "script_name", NULL),
               *path = dt_json_str(o, "script_path", NULL);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < dt_json_count(options); i++)
        rc = option_from_json(&l, dt_json_at(options, i), e);
    for (size_t i = 0; rc == 0 && args && i < dt_json_count(args); i++) {
        struct json_object *word = dt_json_at(args, i);
        if (is_string(word))
            dt_strv_add(&s->args, json_object_get_string(word));
        else
            rc = dt_fail(e,
                         "submission.args: an entry is no text: the study is damaged, submit anew");
    }
    s->options = l.v;
    s->n = l.n;
    s->script_name = name ? dt_xstrdup(name) : NULL;
    s->script_path = path ? dt_xstrdup(path) : NULL;
    if (rc == 0)
        return s;
    dt_submission_free(s);
    return NULL;
}
