#include "util/pattern.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIKE "write it like accuracy=([0-9.]+)"

/* p is behind "["; returns what follows the closing bracket. */
static const char *skip_bracket(const char *p, const char **escape)
{
    p += *p == '^';
    p += *p == ']';
    for (; *p && *p != ']'; p++) {
        if (*p == '[' && p[1] && strchr(":.=", p[1])) { /* [:digit:] */
            const char end[] = {p[1], ']', '\0'}, *close = strstr(p + 2, end);
            p = close ? close + 1 : p;
        } else if (*p == '\\' && isalpha((unsigned char)p[1]) && !*escape) {
            *escape = p;
        }
    }
    return *p ? p + 1 : p;
}

static const char *instead_of(char letter)
{
    switch (letter) {
    case 'd':
        return "; write 0-9 in brackets";
    case 't':
        return "; write [[:blank:]]";
    default:
        return "";
    }
}

/* What POSIX would take for something else than was meant, as an error. */
static int check_dialect(const char *text, struct dt_error *e)
{
    const char *p = text, *escape = NULL;
    while (*p) {
        bool repeats = *p && strchr("*+?}", *p);
        if (*p == '[') {
            p = skip_bracket(p + 1, &escape);
        } else if (*p == '\\' && p[1]) {
            bool known = !isalnum((unsigned char)p[1]) || strchr("wWsSbB", p[1]);
            if (p[1] >= '1' && p[1] <= '9')
                return dt_fail(e, "\"%s\": a back-reference (\\%c) cannot be used; write it out",
                               text, p[1]);
            escape = known || escape ? escape : p;
            p += 2;
        } else {
            p++;
        }
        if (repeats && *p == '?')
            return dt_fail(e,
                           "\"%s\": POSIX has no lazy repetition (%c?); exclude what must not be "
                           "matched, as in [^,]*",
                           text, p[-1]);
    }
    if (escape)
        return dt_fail(e,
                       "\"%s\": \\%c has no meaning of its own there in a POSIX regular "
                       "expression%s",
                       text, escape[1], instead_of(escape[1]));
    return 0;
}

int dt_pattern_compile(const char *text, regex_t *re, struct dt_error *e)
{
    int rc = regcomp(re, text, REG_EXTENDED);
    if (rc) {
        size_t n = regerror(rc, re, NULL, 0);
        char *why = dt_xcalloc(n, 1);
        regerror(rc, re, why, n);
        dt_fail(e, "\"%s\" is no POSIX extended regular expression: %s; %s", text, why, LIKE);
        free(why);
        return -1;
    }
    size_t groups = re->re_nsub;
    if (check_dialect(text, e) < 0) {
        regfree(re);
        return -1;
    }
    if (groups != 1) {
        regfree(re);
        return dt_fail(
            e, "\"%s\": one group is needed, the parentheses around the number, this has %zu; %s",
            text, groups, LIKE);
    }
    return 0;
}

enum dt_pattern_form dt_pattern_match(const regex_t *re, const char *s, size_t n, double *value,
                                      size_t *from, size_t *to)
{
    regmatch_t m[2] = {{.rm_so = 0, .rm_eo = (regoff_t)n}};
    if (regexec(re, s, 2, m, REG_STARTEND) != 0)
        return DT_PATTERN_NONE;
    *from = *to = 0;
    if (m[1].rm_so < 0)
        return DT_PATTERN_ODD;
    *from = (size_t)m[1].rm_so;
    *to = (size_t)m[1].rm_eo;
    char *number = dt_xstrndup(s + *from, *to - *from), *end; /* strtod() needs its end */
    double x = strtod(number, &end);
    size_t read = (size_t)(end - number);
    free(number);
    if (read == 0)
        return DT_PATTERN_ODD;
    *value = isfinite(x) ? x : NAN;
    size_t next = *from + read;
    next += next < n && s[next] == ' ';
    return next < n && s[next] == '%' ? DT_PATTERN_PERCENT : DT_PATTERN_PLAIN;
}
