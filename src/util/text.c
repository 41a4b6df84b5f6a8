#include "util/util.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool dt_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Optimal string alignment: Levenshtein with swaps of neighbours counted once. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), w = m + 1;
    size_t *d = dt_xcalloc((n + 1) * w, sizeof(*d));
    for (size_t i = 0; i <= n; i++)
        d[i * w] = i;
    for (size_t j = 0; j <= m; j++)
        d[j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t best = d[(i - 1) * w + j - 1] + (a[i - 1] != b[j - 1]);
            if (d[(i - 1) * w + j] + 1 < best)
                best = d[(i - 1) * w + j] + 1;
            if (d[i * w + j - 1] + 1 < best)
                best = d[i * w + j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[(i - 2) * w + j - 2] + 1 < best)
                best = d[(i - 2) * w + j - 2] + 1;
            d[i * w + j] = best;
        }
    }
    size_t result = d[n * w + m];
    free(d);
    return result;
}

const char *dt_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 2 + 1; /* farther than that is another word */
    if (strlen(word) > 256)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, candidates[i]);
        if (d < best_distance || (!best && d == best_distance && d <= 2 && d < strlen(word))) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}

char *dt_format_double(double x)
{
    if (x == floor(x) && fabs(x) < 1e15) /* 20, not 2e+01 */
        return dt_xasprintf("%.0f", x == 0 ? 0 : x);
    for (int digits = 1; digits < 17; digits++) {
        char *s = dt_xasprintf("%.*g", digits, x);
        if (strtod(s, NULL) == x)
            return s;
        free(s);
    }
    return dt_xasprintf("%.17g", x);
}

char *dt_format_duration(double seconds)
{
    if (!isfinite(seconds))
        return dt_xstrdup("-");
    if (seconds < 59.95)
        return dt_xasprintf("%.1f s", seconds);
    long long s = llround(seconds);
    if (s < 3600)
        return dt_xasprintf("%lld:%02lld", s / 60, s % 60);
    return dt_xasprintf("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

/* Length of the valid UTF-8 sequence at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    size_t n = *s < 0x80             ? 1
               : (*s & 0xe0) == 0xc0 ? 2
               : (*s & 0xf0) == 0xe0 ? 3
               : (*s & 0xf8) == 0xf0 ? 4
                                     : 0;
    if (n == 0 || n > left || *s == 0xc0 || *s == 0xc1 || *s > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

char *dt_clean_text(const char *s, size_t n)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < n;) {
        size_t k = utf8_length((const unsigned char *)s + i, n - i);
        if (k && s[i])
            dt_buf_addn(&b, s + i, k);
        else
            dt_buf_add(&b, "?");
        i += k ? k : 1;
    }
    return dt_buf_take(&b);
}

#define SNIPPET 60

char *dt_snippet(const char *s, size_t n)
{
    char *clean = dt_clean_text(s, n < SNIPPET ? n : SNIPPET);
    for (char *c = clean; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    if (n <= SNIPPET)
        return clean;
    char *cut = dt_xasprintf("%s...", clean);
    free(clean);
    return cut;
}
