#include "spec/submission_private.h"
#include "util/slurm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Reads #SBATCH lines exactly as sbatch does, oddities included: what it accepts must mean the same
 * here, and what it silently drops must not take part. */

struct lexer {
    const char *name;
    int line;
    struct dt_words *words;
    struct dt_strv *warnings;
    struct dt_error *e;
};

/* isspace() of the C locale: sbatch never calls setlocale(). */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *skip_space(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

char *dt_printable(const char *s)
{
    enum { LONGEST = 80 };
    size_t n = strlen(s), keep = n > LONGEST ? LONGEST : n;
    while (keep < n && keep > 0 && ((unsigned char)s[keep] & 0xC0) == 0x80)
        keep--; /* not through the middle of a UTF-8 character */
    char *out = n > keep ? dt_xasprintf("%.*s...", (int)keep, s) : dt_xstrdup(s);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return out;
}

static void warn(struct lexer *x, const char *before, const char *quoted, const char *after)
{
    char *p = dt_printable(quoted);
    dt_strv_addf(x->warnings, "%s:%d: %s%s%s", x->name, x->line, before, p, after);
    free(p);
}

static int fail(struct lexer *x, const char *before, const char *quoted, const char *after)
{
    char *p = dt_printable(quoted);
    dt_fail(x->e, "%s:%d: %s%s%s", x->name, x->line, before, p, after);
    free(p);
    return -1;
}

/* "hetjob" or its old name, as a word; its length, or 0. */
static size_t het_word(const char *p)
{
    static const char *const words[] = {"hetjob", "packjob"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if (strncasecmp(p, words[i], n) == 0 && (!p[n] || is_space(p[n])))
            return n;
    }
    return 0;
}

static bool has_variable(const char *word)
{
    for (const char *p = word; (p = strchr(p, '$')); p++)
        if (p[1] == '{' || p[1] == '_' || isalnum((unsigned char)p[1]))
            return true;
    return false;
}

static void add_word(struct lexer *x, struct dt_buf *b)
{
    struct dt_words *w = x->words;
    if (has_variable(b->s))
        warn(x, "sbatch expands no variable in \"", b->s,
             "\": write the value itself, or give it on the command line");
    dt_strv_take(&w->list, dt_buf_take(b));
    w->line = dt_xrealloc(w->line, w->list.n, sizeof(*w->line));
    w->line[w->list.n - 1] = x->line;
}

/* One word at **p, with quotes, escapes and a comment; 1: added, 0: the line ends here for sbatch,
 * -1: error. */
static int lex_word(struct lexer *x, const char **p)
{
    struct dt_buf b = DT_BUF_INIT;
    const char *start = *p, *s = start;
    char quote = '\0';
    bool escaped = false, any = false;
    while (*s && (quote || !is_space(*s))) {
        if (escaped) {
            escaped = false;
        } else if (*s == '\\') {
            s++;
            /* Since 24.05 an escaped blank belongs to the word; before, it ends it all the same. */
            escaped = !DT_SLURM_AT_LEAST(24, 5) || *s != ' ';
            if (escaped)
                continue;
        } else if (quote) {
            if (*s == quote) {
                quote = '\0';
                s++;
                continue;
            }
        } else if (*s == '"' || *s == '\'') {
            quote = *s++;
            continue;
        } else if (*s == '#') {
            break;
        }
        dt_buf_addn(&b, s++, 1);
        any = true;
    }
    *p = s;
    if (quote) {
        dt_buf_free(&b);
        return fail(x, "the quote in \"", start, "\" has no end: close it or put \\ before it");
    }
    if (any && *s == '#')
        warn(x, "sbatch takes the # in \"", start,
             "\" for the beginning of a comment: put the value in quotes");
    if (any)
        add_word(x, &b);
    else if (*start == '"' || *start == '\'')
        warn(x, "sbatch takes an empty word for the end of the line and ignores the rest: \"",
             start, "\"; write --name=\"\"");
    return any;
}

static int lex_line(struct lexer *x, const char *p)
{
    p = skip_space(p);
    if (het_word(p))
        return fail(
            x, "\"", p,
            "\": dt-tune makes the heterogeneous job itself: remove this line and give --dt-ps and "
            "--dt-workers");
    for (;;) {
        p = skip_space(p);
        if (*p == ':')
            return fail(x, "a \":\" begins a word in \"", p,
                        "\": sbatch refuses that; write #SBATCH --option=value");
        if (*p && het_word(p)) {
            warn(x, "sbatch takes this word for a separator and ignores the rest of the line: \"",
                 p, "\"");
            return 0;
        }
        if (!*p)
            return 0;
        int rc = lex_word(x, &p);
        if (rc <= 0)
            return rc;
    }
}

/* A comment that somebody wrote for a directive: " #SBATCH -n 2", "# SBATCH --mem=1G", "#sbatch
 * ...". A lower-case command behind a space ("#   sbatch --mem=1G x.sh") is an example of use. */
static void check_lookalike(struct lexer *x, const char *line)
{
    const char *p = skip_space(line);
    if (*p != '#' || p[1] == '#')
        return;
    bool joined = !is_space(p[1]);
    p = skip_space(p + 1);
    if ((joined ? strncasecmp : strncmp)(p, "SBATCH", 6) != 0 || !is_space(p[6]) ||
        *skip_space(p + 6) != '-')
        return;
    warn(x, "\"", line, "\" is a comment for sbatch: begin the line with #SBATCH");
}

static bool is_command(const char *line)
{
    line = skip_space(line);
    return *line && *line != '#';
}

/* Takes one line (a copy up to a NUL, as sbatch does); NULL at the end of the text. */
static char *next_line(const char **p, const char *end)
{
    if (*p >= end)
        return NULL;
    const char *nl = memchr(*p, '\n', (size_t)(end - *p));
    char *line = dt_xstrndup(*p, (size_t)((nl ? nl : end) - *p));
    *p = nl ? nl + 1 : end;
    return line;
}

/* The word that ends a here-document begun in this line, or NULL; a rough reading, for a warning
 * only. */
static char *here_word(const char *line)
{
    const char *p = strstr(line, "<<");
    if (!p || p[2] == '<' || *skip_space(line) == '#')
        return NULL;
    p = skip_space(p + 2 + (p[2] == '-'));
    p += *p == '\\' || *p == '"' || *p == '\'';
    size_t n = strcspn(p, " \t\"';|&<>()");
    return n ? dt_xstrndup(p, n) : NULL;
}

/* Names the #SBATCH lines behind the first command, which sbatch ignores; those of here-documents
 * are meant so. `here` ends the one that the first command begins; it is freed. */
static void check_late(struct lexer *x, char *here, const char *p, const char *end)
{
    int first = x->line, late = 0, count = 0;
    char *line;
    while ((line = next_line(&p, end))) {
        x->line++;
        if (here && strcmp(line + strspn(line, "\t"), here) == 0) {
            free(here);
            here = NULL;
        } else if (!here) {
            here = here_word(line);
            if (dt_starts_with(line, "#SBATCH") && *skip_space(line + 7) == '-' && ++count == 1)
                late = x->line;
        }
        free(line);
    }
    free(here);
    x->line = late;
    char *rest = count > 1 ? dt_xasprintf(" and %d more", count - 1) : dt_xstrdup("");
    if (count)
        dt_strv_addf(x->warnings,
                     "%s:%d: sbatch ignores this #SBATCH line%s, because it stands behind the "
                     "first command (line %d): "
                     "move it up",
                     x->name, late, rest, first);
    free(rest);
}

int dt_directives_lex(const char *text, size_t len, const char *name, struct dt_words *w,
                      struct dt_strv *warnings, struct dt_error *e)
{
    struct lexer x = {.name = name, .words = w, .warnings = warnings, .e = e};
    const char *p = text, *end = text + len;
    char *line, *here = NULL;
    int rc = 0;
    bool command = false;
    while (rc == 0 && !command && (line = next_line(&p, end))) {
        x.line++;
        if (dt_starts_with(line, "#SBATCH")) {
            rc = lex_line(&x, line + 7);
        } else if (dt_starts_with(line, "#SLURM")) {
            warn(&x, "sbatch reads \"", line, "\" as options: write #SBATCH");
            rc = lex_line(&x, line + 6);
        } else if (is_command(line)) {
            command = true;
            here = here_word(line);
        } else {
            check_lookalike(&x, line);
        }
        free(line);
    }
    if (command)
        check_late(&x, here, p, end);
    return rc;
}

void dt_words_free(struct dt_words *w)
{
    dt_strv_free(&w->list);
    free(w->line);
    w->line = NULL;
}

int dt_directives_foreign(const char *text, size_t len)
{
    const char *p = text, *end = text + len;
    int line = 0, others = 0;
    while (p < end && others <= 100) { /* as far as sbatch looks, commands or not */
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        line++;
        if ((n >= 4 && memcmp(p, "#PBS", 4) == 0) || (n >= 5 && memcmp(p, "#BSUB", 5) == 0))
            return line;
        others += !n || *p != '#';
        p = nl ? nl + 1 : end;
    }
    return 0;
}

char *dt_sbatch_quote(const char *value, struct dt_error *e)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@%=";
    struct dt_buf b = DT_BUF_INIT;
    if (*value && strspn(value, plain) == strlen(value))
        return dt_xstrdup(value);
    dt_buf_add(&b, "\"");
    for (const char *p = value; *p; p++) {
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f) {
            dt_buf_free(&b);
            dt_fail(e,
                    "a value with a control character (code %d) cannot stand in a #SBATCH line: "
                    "remove it",
                    *p);
            return NULL;
        }
        if (*p == '"' || *p == '\\')
            dt_buf_add(&b, "\\");
        dt_buf_addn(&b, p, 1);
    }
    dt_buf_add(&b, "\"");
    return dt_buf_take(&b);
}
