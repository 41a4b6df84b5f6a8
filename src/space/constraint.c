#include "space/space.h"

#include <ctype.h>
#include <math.h>
#include <muParserDLL.h>
#include <stdlib.h>
#include <string.h>

struct dt_constraint {
    char *text;
    muParserHandle_t parser;
    double *x; /* what the variables are bound to */
    bool *used;
    double **numbers; /* of a label parameter: index in its own list -> number; else NULL */
    size_t n;
};

/* A quoted label becomes a number that all parameters share, so that equal labels are equal: its
 * place among the labels of all parameters, or -1. */
static double label_number(const struct dt_param *params, size_t n, const char *label, size_t len)
{
    double number = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; params[i].kind == DT_PARAM_LABEL && j < params[i].nvalues; j++) {
            if (strlen(params[i].labels[j]) == len && memcmp(params[i].labels[j], label, len) == 0)
                return number;
            number++;
        }
    }
    return -1;
}

static void unknown_label(const char *label, size_t len, const struct dt_param *params, size_t n,
                          struct dt_error *e)
{
    const char **all = NULL;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; params[i].kind == DT_PARAM_LABEL && j < params[i].nvalues; j++) {
            all = dt_xrealloc(all, count + 1, sizeof(*all));
            all[count++] = params[i].labels[j];
        }
    }
    char *word = dt_xstrndup(label, len);
    const char *near = dt_nearest(word, all, count);
    dt_fail(e, "no parameter has the value \"%s\"%s%s%s", word, near ? "; did you mean \"" : "",
            near ? near : "", near ? "\"?" : "");
    free(word);
    free(all);
}

/* The expression with every quoted label replaced by its number. */
static char *without_labels(const char *text, const struct dt_param *params, size_t n,
                            struct dt_error *e)
{
    struct dt_buf b = DT_BUF_INIT;
    for (const char *s = text; *s;) {
        size_t plain = strcspn(s, "\"'");
        dt_buf_addn(&b, s, plain);
        s += plain;
        if (!*s)
            break;
        const char *end = strchr(s + 1, *s);
        if (!end) {
            dt_fail(e, "the quote %c is not closed", *s);
            dt_buf_free(&b);
            return NULL;
        }
        double number = label_number(params, n, s + 1, (size_t)(end - s - 1));
        if (number < 0) {
            unknown_label(s + 1, (size_t)(end - s - 1), params, n, e);
            dt_buf_free(&b);
            return NULL;
        }
        dt_buf_addf(&b, " %.0f ", number);
        s = end + 1;
    }
    return dt_buf_take(&b);
}

static bool is_name(const char *token, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(token, names[i]) == 0)
            return true;
    return false;
}

static void unknown_name(const char *token, const char *const *names, size_t n, struct dt_error *e)
{
    struct dt_strv all = DT_STRV_INIT;
    for (size_t i = 0; i < n; i++)
        dt_strv_add(&all, names[i]);
    char *list = dt_strv_join(&all, ", ");
    dt_fail(e, "unexpected word \"%s\"; the names here are %s; and, or, not are &&, ||, !", token,
            list);
    free(list);
    dt_strv_free(&all);
}

static int explain(struct dt_constraint *c, const struct dt_param *params, size_t n,
                   const struct dt_fact *facts, size_t nfacts, struct dt_error *e)
{
    const char *token = mupGetErrorToken(c->parser);
    const char **names = dt_xcalloc(n + nfacts, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = params[i].name;
    for (size_t i = 0; i < nfacts; i++)
        names[n + i] = facts[i].name;
    const char *near = token && *token ? dt_nearest(token, names, n + nfacts) : NULL;
    if (near && strcmp(near, token) != 0)
        dt_fail(e, "unknown name \"%s\"; did you mean \"%s\"?", token, near);
    else if (token && (isalpha((unsigned char)*token) || *token == '_') &&
             !is_name(token, names, n + nfacts))
        unknown_name(token, names, n + nfacts, e);
    else
        dt_fail(e, "%s", mupGetErrorMsg(c->parser));
    free(names);
    return -1;
}

/* muParser takes a single = for an assignment, which always "holds". */
static bool assigns(const char *expr)
{
    for (const char *s = strchr(expr, '='); s; s = strchr(s + 1, '=')) {
        if (s[1] == '=')
            s++;
        else if (s == expr || !strchr("<>!", s[-1]))
            return true;
    }
    return false;
}

/* Compiles and evaluates once, so that every fault shows now. Reading muParser's error flag clears
 * it. */
static int try_out(struct dt_constraint *c, const char *expr, const struct dt_param *params,
                   size_t n, const struct dt_fact *facts, size_t nfacts, const char *if_several,
                   struct dt_error *e)
{
    int values = 0;
    if (assigns(expr))
        return dt_fail(e, "= sets a value; write == to compare");
    mupSetExpr(c->parser, expr);
    mupEvalMulti(c->parser, &values);
    if (mupError(c->parser))
        return explain(c, params, n, facts, nfacts, e);
    if (values != 1)
        return dt_fail(e, "these are %d expressions; %s", values, if_several);
    int used = mupGetExprVarNum(c->parser);
    for (int i = 0; i < used; i++) {
        const char *name;
        muFloat_t *at;
        mupGetExprVar(c->parser, (unsigned)i, &name, &at);
        if (at)
            c->used[at - c->x] = true;
    }
    return 0;
}

static double is_zero(double x)
{
    return x == 0;
}

/* `if_several`: what to do about a list of expressions. */
static struct dt_constraint *compile(const char *text, const struct dt_param *params, size_t n,
                                     const struct dt_fact *facts, size_t nfacts,
                                     const char *if_several, struct dt_error *e)
{
    char *expr = without_labels(text, params, n, e);
    if (!expr)
        return NULL;
    struct dt_constraint *c = dt_xcalloc(1, sizeof(*c));
    c->text = dt_xstrdup(text);
    c->n = n;
    c->x = dt_xcalloc(n, sizeof(double));
    c->used = dt_xcalloc(n, sizeof(bool));
    c->numbers = dt_xcalloc(n, sizeof(double *));
    c->parser = mupCreate(muBASETYPE_FLOAT);
    for (size_t i = 0; i < n; i++) {
        mupDefineVar(c->parser, params[i].name, &c->x[i]);
        c->x[i] = dt_param_at(&params[i], 0);
        if (params[i].kind != DT_PARAM_LABEL)
            continue;
        c->numbers[i] = dt_xcalloc(params[i].nvalues, sizeof(double));
        for (size_t j = 0; j < params[i].nvalues; j++)
            c->numbers[i][j] =
                label_number(params, n, params[i].labels[j], strlen(params[i].labels[j]));
    }
    for (size_t i = 0; i < nfacts; i++)
        mupDefineConst(c->parser, facts[i].name, facts[i].value);
    mupDefineInfixOprt(c->parser, "!", is_zero, 1);
    mupDefineOprt(c->parser, "%", fmod, 6 /* as * and / */, muOPRT_ASCT_LEFT, 1);
    int rc = try_out(c, expr, params, n, facts, nfacts, if_several, e);
    free(expr);
    if (rc < 0) {
        dt_constraint_free(c);
        return NULL;
    }
    return c;
}

struct dt_constraint *dt_constraint_new(const char *text, const struct dt_param *params, size_t n,
                                        const struct dt_fact *facts, size_t nfacts,
                                        struct dt_error *e)
{
    struct dt_constraint *c =
        compile(text, params, n, facts, nfacts, "write each as a constraint of its own", e);
    if (!c)
        dt_fail_at(e, "constraint \"%s\"", text);
    return c;
}

struct dt_constraint *dt_condition_new(const char *text, const struct dt_param *params, size_t n,
                                       const struct dt_fact *facts, size_t nfacts,
                                       struct dt_error *e)
{
    struct dt_constraint *c = compile(text, params, n, facts, nfacts, "join them by &&", e);
    if (!c)
        dt_fail_at(e, "condition \"%s\"", text);
    return c;
}

/* Whether all that it mentions has a value; nothing else in x is read. */
static bool is_known(const struct dt_constraint *c, const double *x)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->used[i] && isnan(x[i]))
            return false;
    return true;
}

static double evaluate(struct dt_constraint *c, const double *x)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->used[i])
            c->x[i] = c->numbers[i] ? c->numbers[i][(size_t)x[i]] : x[i];
    return mupEval(c->parser);
}

bool dt_constraint_holds(struct dt_constraint *c, const double *x)
{
    return !is_known(c, x) || evaluate(c, x) != 0;
}

bool dt_condition_holds(struct dt_constraint *c, const double *x)
{
    double value = is_known(c, x) ? evaluate(c, x) : NAN;
    return !isnan(value) && value != 0;
}

bool dt_constraint_mentions(const struct dt_constraint *c, size_t i)
{
    return c->used[i];
}

const char *dt_constraint_text(const struct dt_constraint *c)
{
    return c->text;
}

void dt_constraint_free(struct dt_constraint *c)
{
    if (!c)
        return;
    mupRelease(c->parser);
    for (size_t i = 0; i < c->n; i++)
        free(c->numbers[i]);
    free(c->numbers);
    free(c->text);
    free(c->x);
    free(c->used);
    free(c);
}
