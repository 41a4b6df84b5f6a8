/* Slurm's node lists. libslurm can expand them too, but reads slurm.conf to do so and ends the
 * program where there is none. */
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 1000000

#define RANGE_MAX 1000000

static int add_range(const char *prefix, const char *range, const char *rest, struct dt_strv *out,
                     struct dt_error *e)
{
    char *end;
    size_t width = strspn(range, "0123456789");
    long low = strtol(range, &end, 10), high = low;
    if (end == range)
        return dt_fail(e, "node list: \"%s\" is no number", range);
    if (*end == '-') {
        const char *second = end + 1;
        high = strtol(second, &end, 10);
        if (end == second)
            return dt_fail(e, "node list: \"%s\" is no range", range);
    }
    if (*end || high < low || high - low > RANGE_MAX)
        return dt_fail(e, "node list: \"%s\" is no range", range);
    for (long i = low; i <= high; i++) {
        char *name = dt_xasprintf("%s%0*ld%s", prefix, (int)width, i, rest);
        int rc = dt_hostlist_expand(name, out, e);
        free(name);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* One word without commas outside brackets: prefix[ranges]rest, the first bracket expanded first.
 */
static int add_word(const char *word, struct dt_strv *out, struct dt_error *e)
{
    const char *open = strchr(word, '[');
    if (!open) {
        dt_strv_add(out, word);
        return 0;
    }
    const char *close = strchr(open, ']');
    if (!close)
        return dt_fail(e, "node list: \"%s\" lacks a ]", word);
    char *prefix = dt_xstrndup(word, (size_t)(open - word));
    char *inside = dt_xstrndup(open + 1, (size_t)(close - open - 1));
    struct dt_strv ranges = DT_STRV_INIT;
    int rc = 0;
    dt_strv_split(&ranges, inside, ",");
    for (size_t i = 0; i < ranges.n && rc == 0; i++)
        rc = add_range(prefix, ranges.v[i], close + 1, out, e);
    dt_strv_free(&ranges);
    free(prefix);
    free(inside);
    return rc;
}

int dt_hostlist_expand(const char *text, struct dt_strv *out, struct dt_error *e)
{
    const char *start = text;
    int depth = 0;
    for (const char *p = text;; p++) {
        if (*p == '[')
            depth++;
        else if (*p == ']')
            depth--;
        if (*p && !(*p == ',' && depth == 0))
            continue;
        if (p > start) {
            char *word = dt_xstrndup(start, (size_t)(p - start));
            int rc = add_word(word, out, e);
            free(word);
            if (rc < 0)
                return -1;
        }
        if (!*p)
            return 0;
        start = p + 1;
    }
}

/* A name in parts: "n007" is the prefix "n" and the number 7, written with 3 digits. */
struct numbered {
    size_t prefix, digits;
    long number;
};

static struct numbered parts_of(const char *name)
{
    size_t n = strlen(name), digits = 0;
    while (digits < n && digits < 9 && strchr("0123456789", name[n - digits - 1]))
        digits++;
    return (struct numbered){n - digits, digits, digits ? strtol(name + n - digits, NULL, 10) : 0};
}

/* How many names from the first on differ in their number only. */
static size_t alike(char *const *names, size_t n)
{
    struct numbered first = parts_of(names[0]);
    size_t count = 1;
    for (; first.digits && count < n; count++) {
        struct numbered p = parts_of(names[count]);
        bool padded = names[0][first.prefix] == '0' || names[count][p.prefix] == '0';
        if (!p.digits || p.prefix != first.prefix || (padded && p.digits != first.digits) ||
            strncmp(names[0], names[count], first.prefix) != 0)
            break;
    }
    return count;
}

static void add_ranges(struct dt_buf *b, char *const *names, size_t n)
{
    size_t prefix = parts_of(names[0]).prefix;
    dt_buf_addn(b, names[0], prefix);
    for (size_t i = 0, last; i < n; i = last + 1) {
        for (last = i;
             last + 1 < n && parts_of(names[last + 1]).number == parts_of(names[last]).number + 1;)
            last++;
        dt_buf_addf(b, "%s%s", i ? "," : "[", names[i] + prefix);
        if (last > i)
            dt_buf_addf(b, "-%s", names[last] + prefix);
    }
    dt_buf_add(b, "]");
}

char *dt_hostlist_compress(const struct dt_strv *names)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0, n; i < names->n; i += n) {
        n = alike(names->v + i, names->n - i);
        dt_buf_add(&b, i ? "," : "");
        if (n == 1)
            dt_buf_add(&b, names->v[i]);
        else
            add_ranges(&b, names->v + i, n);
    }
    return dt_buf_take(&b);
}

int dt_counts_expand(const char *text, int **out)
{
    int n = 0;
    int *list = NULL;
    *out = NULL;
    while (text && *text) {
        char *end;
        long count = strtol(text, &end, 10), times = 1;
        if (end == text || count < 0 || count > COUNT_MAX)
            break;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            if (*end++ != ')' || times < 1 || times > COUNT_MAX)
                break;
        }
        list = dt_xrealloc(list, (size_t)(n + times), sizeof(*list));
        while (times-- > 0)
            list[n++] = (int)count;
        if (*end == '\0') {
            *out = list;
            return n;
        }
        if (*end != ',')
            break;
        text = end + 1;
    }
    free(list);
    return -1;
}
