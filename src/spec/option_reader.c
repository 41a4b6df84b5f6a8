#include "spec/submission_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* sbatch reads each source of options with getopt_long() over one table; the same function over the
 * same names gives its abbreviations, bundled short options and errors. */

enum { LONG_BASE = 256 }; /* val of the first long option, above every short one */

/* ---- lists of options ---- */

void dt_option_list_add(struct dt_option_list *l, const struct dt_option *o)
{
    l->v = dt_xrealloc(l->v, l->n + 1, sizeof(*l->v));
    l->v[l->n] = *o;
    l->v[l->n].name = dt_xstrdup(o->name);
    l->v[l->n].value = o->value ? dt_xstrdup(o->value) : NULL;
    l->n++;
}

void dt_option_list_free(struct dt_option_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].name);
        free(l->v[i].value);
    }
    free(l->v);
    *l = (struct dt_option_list){0};
}

/* ---- the table for getopt_long() ---- */

static size_t table_size(void)
{
    size_t n = 0;
    while (dt_sbatch_options[n].name)
        n++;
    return n;
}

static const struct dt_sbatch_option *option_at(const struct dt_option_reader *r, size_t i)
{
    size_t n = table_size();
    return i < n ? &dt_sbatch_options[i] : &r->foreign[i - n];
}

static bool is_foreign(const struct dt_option_reader *r, const struct dt_sbatch_option *def)
{
    return r->n_foreign && def >= r->foreign && def < r->foreign + r->n_foreign;
}

static void build_table(struct dt_option_reader *r)
{
    size_t n = table_size() + r->n_foreign;
    struct dt_buf shorts = DT_BUF_INIT;
    free(r->longs);
    free(r->shorts);
    r->longs = dt_xcalloc(n + 1, sizeof(*r->longs));
    dt_buf_add(
        &shorts,
        "+:"); /* stop at the first other word; tell a missing argument from an unknown option */
    for (size_t i = 0; i < n; i++) {
        const struct dt_sbatch_option *o = option_at(r, i);
        r->longs[i] = (struct option){o->name, o->has_arg, NULL, LONG_BASE + (int)i};
        if (o->short_name)
            dt_buf_addf(&shorts, "%c%s", o->short_name,
                        &"::"[o->has_arg == no_argument ? 2 : o->has_arg == required_argument]);
    }
    r->shorts = dt_buf_take(&shorts);
}

static const struct dt_sbatch_option *option_of(const struct dt_option_reader *r, int c)
{
    if (c >= LONG_BASE)
        return option_at(r, (size_t)(c - LONG_BASE));
    for (const struct dt_sbatch_option *o = dt_sbatch_options; o->name; o++)
        if (o->short_name == c)
            return o;
    return NULL;
}

void dt_option_reader_free(struct dt_option_reader *r)
{
    for (size_t i = 0; i < r->n_foreign; i++)
        free((char *)r->foreign[i].name);
    free(r->foreign);
    free(r->longs);
    free(r->shorts);
    *r = (struct dt_option_reader){0};
}

/* ---- options of other SPANK plugins ---- */

static void add_foreign(struct dt_option_reader *r, const char *name, size_t len, int has_arg)
{
    char *copy = dt_xstrndup(name, len);
    for (size_t i = 0; i < table_size() + r->n_foreign; i++) {
        if (strcmp(option_at(r, i)->name, copy) == 0) {
            free(copy);
            return;
        }
    }
    r->foreign = dt_xrealloc(r->foreign, r->n_foreign + 1, sizeof(*r->foreign));
    r->foreign[r->n_foreign++] = (struct dt_sbatch_option){.name = copy, .has_arg = has_arg};
}

/* Lines of the section "Options provided by plugins:" look like "      --name=ARG   text"; text
 * that goes on in the next line stands farther right. */
static void read_help(struct dt_option_reader *r, const char *help)
{
    const char *p = strstr(help, "\nOptions provided by plugins:\n");
    if (!p)
        return;
    for (p = strchr(p + 1, '\n'); p; p = strchr(p, '\n')) {
        p++;
        if (isupper((unsigned char)*p)) /* the next section */
            return;
        const char *name = p + strspn(p, " ");
        if (!dt_starts_with(name, "--") || name - p > 12)
            continue;
        name += 2;
        size_t len = strcspn(name, "= \t\n");
        if (len)
            add_foreign(r, name, len, name[len] == '=' ? required_argument : no_argument);
    }
}

/* Learns the foreign options, once; an sbatch that cannot be asked is no error here. */
static void ask_sbatch(struct dt_option_reader *r)
{
    struct dt_proc_result result;
    struct dt_error ignored = DT_ERROR_INIT;
    if (r->asked || !r->sbatch)
        return;
    r->asked = true;
    char *argv[] = {(char *)r->sbatch, "--help", NULL};
    if (dt_proc_run(argv, r->env, 20, &result, &ignored) == 0) {
        r->answered = WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0 &&
                      strstr(result.out, "Usage: sbatch");
        if (r->answered)
            read_help(r, result.out);
        dt_proc_result_free(&result);
    }
    dt_error_clear(&ignored);
}

static bool has_foreign(const struct dt_option_reader *r, const char *name, size_t len)
{
    for (size_t i = 0; i < r->n_foreign; i++)
        if (strncmp(r->foreign[i].name, name, len) == 0)
            return true;
    return false;
}

/* ---- messages ---- */

struct parse {
    struct dt_option_reader *r;
    int argc;
    char **argv;
    const struct dt_word_source *from;
    struct dt_option_list *out;
    struct dt_strv *warnings;
    struct dt_error *e;
    int at; /* the word that holds the present option */
};

static char *place_of(const struct parse *p, int at)
{
    if (p->from->script)
        return dt_xasprintf("%s:%d", p->from->script, p->from->line[at]);
    return dt_xstrdup("command line");
}

/* Takes over `what`. */
static int fail_at(struct parse *p, int at, char *what)
{
    char *place = place_of(p, at);
    dt_fail(p->e, "%s: %s", place, what);
    free(place);
    free(what);
    return -1;
}

static void warn_at(struct parse *p, int at, char *what)
{
    char *place = place_of(p, at);
    dt_strv_addf(p->warnings, "%s: %s", place, what);
    free(place);
    free(what);
}

static const char *nearest(const struct dt_option_reader *r, const char *name)
{
    size_t n = table_size() + r->n_foreign;
    const char **all = dt_xcalloc(n, sizeof(*all));
    for (size_t i = 0; i < n; i++)
        all[i] = option_at(r, i)->name;
    const char *best = dt_nearest(name, all, n);
    free(all);
    return best;
}

/* Past the dashes of "--name", also where an editor made long ones of them (U+2010..U+2015,
 * U+2212). */
static const char *past_dashes(const char *word, bool *unicode)
{
    *unicode = false;
    for (;;) {
        const unsigned char *u = (const unsigned char *)word;
        if (*word == '-') {
            word++;
        } else if (u[0] == 0xE2 && ((u[1] == 0x80 && u[2] >= 0x90 && u[2] <= 0x95) ||
                                    (u[1] == 0x88 && u[2] == 0x92))) {
            *unicode = true;
            word += 3;
        } else {
            return word;
        }
    }
}

/* "nodes=2", "–nodes=2", "(one GPU)": a word where an option should be. */
static char *stray_text(const struct dt_option_reader *r, const char *word)
{
    bool unicode;
    const char *body = past_dashes(word, &unicode);
    char *shown = dt_printable(word), *rest = dt_printable(body), *text;
    char *name = dt_xstrndup(body, strcspn(body, "="));
    const struct dt_sbatch_option *known = dt_sbatch_option_find(name);
    const char *like = known ? known->name : nearest(r, name);
    if (unicode && strlen(name) > 1)
        text = dt_xasprintf("\"%s\" begins with a dash that is no \"-\": write --%s", shown, rest);
    else if (unicode)
        text = dt_xasprintf("\"%s\" begins with a dash that is no \"-\": write -%s", shown, rest);
    else if (like && (known || strchr(body, '=')))
        text = dt_xasprintf("\"%s\" is no option: write --%s%s", shown, like,
                            rest + strcspn(rest, "="));
    else
        text = dt_xasprintf("\"%s\" is no option: remove it, or put # before it if it is a comment",
                            shown);
    free(shown);
    free(rest);
    free(name);
    return text;
}

static int fail_unknown(struct parse *p, const char *word)
{
    bool unicode, is_long = dt_starts_with(word, "--");
    past_dashes(word, &unicode);
    if (unicode)
        return fail_at(p, p->at, stray_text(p->r, word));
    char *shown = dt_printable(word), *text;
    if (is_long) {
        char *name = dt_xstrndup(word + 2, strcspn(word + 2, "="));
        const char *like = nearest(p->r, name);
        char *hint =
            like ? dt_xasprintf("did you mean --%s?", like) : dt_xstrdup("see sbatch --help");
        bool value = !strchr(word, '=') && !p->r->answered;
        text = dt_xasprintf(
            "unknown option \"%s\": %s%s", shown, hint,
            value ? " (an option of another Slurm plugin needs the form --name=value here)" : "");
        free(name);
        free(hint);
    } else {
        text = dt_xasprintf(
            "unknown option in \"%s\": see sbatch --help; long options begin with two dashes",
            shown);
    }
    free(shown);
    return fail_at(p, p->at, text);
}

static int fail_ambiguous(struct parse *p, const char *word)
{
    size_t len = strcspn(word, "=");
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < table_size() + p->r->n_foreign; i++) {
        const char *name = option_at(p->r, i)->name;
        if (strncmp(name, word + 2, len - 2) == 0)
            dt_buf_addf(&b, "%s--%s", b.len ? ", " : "", name);
    }
    char *all = dt_buf_take(&b);
    char *text = dt_xasprintf("\"%.*s\" is short for several options: write out one of %s",
                              (int)len, word, all);
    free(all);
    return fail_at(p, p->at, text);
}

/* ---- one option ---- */

/* "-nodes=2" is -n with the argument "odes=2": the long option that was meant, or NULL. */
static const struct dt_sbatch_option *single_dash(const char *word)
{
    if (word[0] != '-' || word[1] == '-' || !word[1] || !word[2])
        return NULL;
    char *name = dt_xstrndup(word + 1, strcspn(word + 1, "="));
    const struct dt_sbatch_option *def = dt_sbatch_option_find(name);
    free(name);
    return def;
}

static void warn_odd(struct parse *p, const struct dt_sbatch_option *def, const char *word)
{
    const struct dt_sbatch_option *meant = single_dash(word);
    if (meant) {
        char *shown = dt_printable(word);
        warn_at(
            p, p->at,
            dt_xasprintf(
                "sbatch reads \"%s\" as -%c \"%s\": write -%s, with two dashes, if --%s is meant",
                shown, word[1], shown + 2, shown, meant->name));
        free(shown);
    }
    int value_at = optind - 1;
    if (optarg && p->from->script && optarg == p->argv[value_at] &&
        p->from->line[value_at] != p->from->line[p->at]) {
        char *shown = dt_printable(optarg);
        warn_at(
            p, p->at,
            dt_xasprintf("--%s has no value in its line, so sbatch takes \"%s\" of line %d for it",
                         def->name, shown, p->from->line[value_at]));
        free(shown);
    }
}

/* What sbatch handles before it reads the script, and passes over in it. */
static bool is_early(const char *name)
{
    static const char *const early[] = {"help", "quiet", "usage", "verbose", "version", "wrap"};
    for (size_t i = 0; i < sizeof(early) / sizeof(*early); i++)
        if (strcmp(early[i], name) == 0)
            return true;
    return false;
}

static int take_option(struct parse *p, const struct dt_sbatch_option *def, char *value,
                       const char *word)
{
    if (def->class == DT_OPT_REFUSE && !is_foreign(p->r, def))
        return fail_at(p, p->at, dt_xasprintf("--%s: %s", def->name, def->why));
    warn_odd(p, def, word);
    if (p->from->script && is_early(def->name)) {
        warn_at(p, p->at,
                dt_xasprintf("sbatch ignores --%s in a script: give it on the command line",
                             def->name));
        return 0;
    }
    const char *fault = value ? dt_sbatch_value_fault(def, value) : NULL;
    if (fault) {
        const struct dt_sbatch_option *meant = single_dash(word);
        char *shown = dt_printable(value);
        char *text = meant
                         ? dt_xasprintf("--%s=%s: %s; write -%s, with two dashes, if --%s is meant",
                                        def->name, shown, fault, word, meant->name)
                         : dt_xasprintf("--%s=%s: %s", def->name, shown, fault);
        free(shown);
        return fail_at(p, p->at, text);
    }
    struct dt_option o = {
        .def = is_foreign(p->r, def) ? NULL
               : def->same_as        ? dt_sbatch_option_find(def->same_as)
                                     : def,
        .name = (char *)(def->same_as ? def->same_as : def->name),
        .value = value,
        .origin = p->from->origin,
        .line = p->from->script ? p->from->line[p->at] : 0,
    };
    dt_option_list_add(p->out, &o);
    return 0;
}

static bool is_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '_')
            return false;
    return len > 0;
}

/* An option that getopt_long() does not know. 1: the table has grown, read the word again; 0:
 * taken; -1: error. */
static int take_unknown(struct parse *p)
{
    char *word = p->argv[p->at];
    if (!dt_starts_with(word, "--"))
        return fail_unknown(p, word);
    size_t len = strcspn(word + 2, "="), matches = 0;
    for (size_t i = 0; i < table_size() + p->r->n_foreign; i++)
        matches += strncmp(option_at(p->r, i)->name, word + 2, len) == 0;
    if (matches > 1)
        return fail_ambiguous(p, word);
    if (!p->r->asked && p->r->sbatch) {
        ask_sbatch(p->r);
        if (has_foreign(p->r, word + 2, len)) {
            build_table(p->r);
            return 1;
        }
    }
    if (p->r->answered || word[2 + len] != '=' || !is_name(word + 2, len))
        return fail_unknown(p, word);
    char *name = dt_xstrndup(word + 2, len);
    struct dt_option o = {.name = name,
                          .value = word + 3 + len,
                          .origin = p->from->origin,
                          .line = p->from->script ? p->from->line[p->at] : 0};
    dt_option_list_add(p->out, &o);
    free(name);
    return 0;
}

/* getopt_long() said '?' or ':'. */
static int take_fault(struct parse *p, int c)
{
    const struct dt_sbatch_option *def = optopt ? option_of(p->r, optopt) : NULL;
    if (!def)
        return take_unknown(p);
    if (c == ':')
        return fail_at(
            p, p->at,
            dt_xasprintf("--%s: its argument is missing: write --%s=VALUE", def->name, def->name));
    return fail_at(p, p->at,
                   dt_xasprintf("--%s takes no argument: write --%s alone", def->name, def->name));
}

static int parse_all(struct parse *p, int *rest)
{
    int base = 0; /* getopt_long() begins at argv[base + 1] */
    optind = 0;   /* glibc: begin anew, with another argv and table */
    for (;;) {
        int at = optind ? optind : 1;
        int c = getopt_long(p->argc - base, p->argv + base, p->r->shorts, p->r->longs, NULL);
        p->at = base + at;
        if (c == -1)
            break;
        optind += base; /* warn_odd() looks at the whole list */
        int rc = c == '?' || c == ':' ? take_fault(p, c)
                                      : take_option(p, option_of(p->r, c), optarg, p->argv[p->at]);
        optind -= base;
        if (rc < 0)
            return -1;
        if (rc > 0) {
            base = p->at - 1;
            optind = 0;
        }
    }
    *rest = base + optind;
    return 0;
}

int dt_option_reader_parse(struct dt_option_reader *r, int argc, char **argv,
                           const struct dt_word_source *from, struct dt_option_list *out, int *rest,
                           struct dt_strv *warnings, struct dt_error *e)
{
    int saved[] = {optind, opterr, optopt};
    char *saved_arg = optarg;
    struct parse p = {.r = r,
                      .argc = argc,
                      .argv = argv,
                      .from = from,
                      .out = out,
                      .warnings = warnings,
                      .e = e,
                      .at = 1};
    if (!r->longs)
        build_table(r);
    opterr = 0;
    int rc = parse_all(&p, rest);
    optind = saved[0];
    opterr = saved[1];
    optopt = saved[2];
    optarg = saved_arg;
    return rc;
}

int dt_option_reader_script(struct dt_option_reader *r, const char *text, size_t len,
                            const char *name, struct dt_option_list *out, struct dt_strv *warnings,
                            struct dt_error *e)
{
    struct dt_words w = {DT_STRV_INIT, NULL};
    struct dt_word_source from = {.origin = DT_FROM_SCRIPT, .script = name};
    /* getopt_long() passes over the first word */
    dt_strv_add(&w.list, "sbatch");
    w.line = dt_xcalloc(1, sizeof(*w.line));
    int rest = 0, rc = dt_directives_lex(text, len, name, &w, warnings, e);
    if (rc == 0) {
        from.line = w.line;
        rc = dt_option_reader_parse(r, (int)w.list.n, w.list.v, &from, out, &rest, warnings, e);
    }
    if (rc == 0 && rest < (int)w.list.n) {
        char *what = stray_text(r, w.list.v[rest]);
        rc = dt_fail(e, "%s:%d: %s", name, w.line[rest], what);
        free(what);
    }
    dt_words_free(&w);
    return rc;
}
