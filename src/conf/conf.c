#include "conf/conf.h"
#include "util/number.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 65536

enum kind { TEXT, NAMES, COUNT, HOURS, MEMORY, MINUTES, FOLDER };

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset; /* of its field in struct dt_conf */
} keys[] = {
    {"Refuse", TEXT, offsetof(struct dt_conf, refuse)},
    {"AllowUsers", NAMES, offsetof(struct dt_conf, users)},
    {"AllowGroups", NAMES, offsetof(struct dt_conf, groups)},
    {"AllowAccounts", NAMES, offsetof(struct dt_conf, accounts)},
    {"MaxParallel", COUNT, offsetof(struct dt_conf, parallel)},
    {"MaxConfigs", COUNT, offsetof(struct dt_conf, configs)},
    {"MaxNodeHours", HOURS, offsetof(struct dt_conf, node_hours)},
    {"TunerPartition", TEXT, offsetof(struct dt_conf, tuner_partition)},
    {"TunerMemory", MEMORY, offsetof(struct dt_conf, tuner_mem_mib)},
    {"TunerTime", MINUTES, offsetof(struct dt_conf, tuner_time_min)},
    {"History", FOLDER, offsetof(struct dt_conf, history)},
};
#define NKEYS (sizeof(keys) / sizeof(*keys))

#define KNOWN_KEYS                                                                                 \
    "Refuse, AllowUsers, AllowGroups, AllowAccounts, MaxParallel, MaxConfigs, MaxNodeHours, "      \
    "TunerPartition, TunerMemory, TunerTime, History"

static const char *const wanted[] = {
    [TEXT] = "a text",
    [NAMES] = "names with commas between them",
    [COUNT] = "a whole number from 1 to 1000000",
    [HOURS] = "a number of hours above 0",
    [MEMORY] = "an amount of memory from 1M to 1000G, such as 512M or 1G",
    [MINUTES] = "a time from one minute to a year, such as 60, 12:00:00 or 1-0",
    [FOLDER] = "a path that begins with /",
};

#define MINUTES_MAX (366 * 24 * 60)
#define MEMORY_MAX (1000 * 1024)

/* ---- a line ---- */

static char *trim(char *s)
{
    size_t n;
    while (isspace((unsigned char)*s))
        s++;
    for (n = strlen(s); n && isspace((unsigned char)s[n - 1]);)
        s[--n] = '\0';
    return s;
}

/* Cuts a comment off, but not within quotes. */
static void drop_comment(char *s)
{
    bool quoted = false;
    for (; *s && (quoted || *s != '#'); s++)
        quoted ^= *s == '"';
    *s = '\0';
}

/* The value without its quotes; NULL where one is missing, or stands within. */
static char *unquote(char *s)
{
    size_t n = strlen(s);
    if (*s == '"') {
        if (n < 2 || s[n - 1] != '"')
            return NULL;
        s[n - 1] = '\0';
        s++;
    }
    return strchr(s, '"') ? NULL : s;
}

static bool printable(const char *s)
{
    for (; *s; s++)
        if (iscntrl((unsigned char)*s))
            return false;
    return true;
}

/* Drops blanks around commas; false where a name is empty or holds a blank. */
static bool tidy_names(char *s)
{
    char *to = s, *from = s;
    for (;;) {
        size_t n;
        while (isspace((unsigned char)*from))
            from++;
        n = strcspn(from, ", \t");
        if (n == 0)
            return false;
        memmove(to, from, n);
        to += n;
        for (from += n; isspace((unsigned char)*from);)
            from++;
        if (!*from)
            break;
        if (*from++ != ',')
            return false;
        *to++ = ',';
    }
    *to = '\0';
    return true;
}

static bool read_number(enum kind kind, const char *s, uint64_t *n)
{
    int64_t count = 0;
    double seconds = 0;
    switch (kind) {
    case COUNT:
        if (dt_parse_int64(s, &count) < 0 || count < 1 || count > 1000000)
            return false;
        *n = (uint64_t)count;
        return true;
    case MEMORY:
        return dt_parse_mem(s, n) == 0 && *n >= 1 && *n <= MEMORY_MAX;
    default:
        if (dt_parse_time(s, &seconds) < 0 || !(seconds >= 60 && seconds <= MINUTES_MAX * 60.0))
            return false;
        *n = (uint64_t)(seconds / 60);
        return true;
    }
}

/* 1, 0 where the value is none of the key's kind, -1 without memory. */
static int set_text(enum kind kind, char *value, char **field)
{
    if (!printable(value) || (kind == NAMES && !tidy_names(value)) ||
        (kind == FOLDER && *value != '/'))
        return 0;
    *field = strdup(value);
    return *field ? 1 : -1;
}

static int set(const struct key *k, char *value, struct dt_conf *c)
{
    void *field = (char *)c + k->offset;
    double *hours = field;
    switch (k->kind) {
    case TEXT:
    case NAMES:
    case FOLDER:
        return set_text(k->kind, value, field);
    case HOURS:
        return dt_parse_double(value, hours) == 0 && *hours > 0;
    default:
        return read_number(k->kind, value, field);
    }
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < NKEYS; i++)
        if (strcasecmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static int wrong(char **why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int wrong(char **why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(why, fmt, ap) < 0)
        *why = NULL;
    va_end(ap);
    return -1;
}

/* `seen`: a bit for each key. */
static int read_line(char *line, unsigned number, struct dt_conf *c, unsigned *seen, char **why)
{
    drop_comment(line);
    line = trim(line);
    char *equals = strchr(line, '=');
    if (!*line)
        return 0;
    if (!equals)
        return wrong(why, "line %u: Key=Value is needed, not \"%.60s\"", number, line);
    *equals = '\0';
    const struct key *k = find_key(trim(line));
    if (!k)
        return wrong(why, "line %u: there is no key \"%.60s\"; there are " KNOWN_KEYS, number,
                     trim(line));
    unsigned bit = 1u << (k - keys);
    if (*seen & bit)
        return wrong(why, "line %u: %s is given twice; leave one of them out", number, k->name);
    *seen |= bit;
    char *value = unquote(trim(equals + 1));
    if (!value)
        return wrong(why, "line %u: %s: quotes must stand around the whole value", number, k->name);
    if (!*value)
        return wrong(why, "line %u: %s has no value; leave the line out if it is to say nothing",
                     number, k->name);
    int rc = set(k, value, c);
    if (rc < 0)
        return wrong(why, "out of memory");
    return rc ? 0
              : wrong(why, "line %u: %s=%.60s: %s is needed", number, k->name, value,
                      wanted[k->kind]);
}

/* ---- the whole ---- */

int dt_conf_parse(const char *text, struct dt_conf *c, char **why)
{
    struct dt_conf new = {0};
    char *copy = strdup(text), *rest = copy, *line;
    unsigned seen = 0, number = 0;
    int rc = copy ? 0 : wrong(why, "out of memory");
    while (rc == 0 && (line = strsep(&rest, "\n")))
        rc = read_line(line, ++number, &new, &seen, why);
    free(copy);
    if (rc < 0) {
        dt_conf_free(&new);
        return -1;
    }
    *c = new;
    return 0;
}

/* Never waits, whatever lies there instead of a file. */
static char *read_file(const char *path, char **why)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    char *text = NULL;
    ssize_t n = 0;
    size_t len = 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        wrong(why, "%s", strerror(errno));
    else if (!S_ISREG(st.st_mode) || st.st_size >= FILE_MAX)
        wrong(why, "a file of less than %d bytes is needed here", FILE_MAX);
    else if (!(text = malloc(FILE_MAX)))
        wrong(why, "out of memory");
    while (text && len < FILE_MAX - 1 && (n = read(fd, text + len, FILE_MAX - 1 - len)) > 0)
        len += (size_t)n;
    if (text && n < 0)
        wrong(why, "%s", strerror(errno));
    if (text)
        text[len] = '\0';
    if (text && n >= 0 && strlen(text) != len)
        n = wrong(why, "it holds bytes that are no text");
    if (text && n < 0) {
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

int dt_conf_load(const char *path, struct dt_conf *c, char **why)
{
    *why = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        *c = (struct dt_conf){0};
        return 0;
    }
    char *text = read_file(path, why);
    int rc = text ? dt_conf_parse(text, c, why) : -1;
    free(text);
    return rc;
}

void dt_conf_free(struct dt_conf *c)
{
    free(c->refuse);
    free(c->users);
    free(c->groups);
    free(c->accounts);
    free(c->tuner_partition);
    free(c->history);
    *c = (struct dt_conf){0};
}

bool dt_conf_has(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = names; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && strncmp(p, name, n) == 0)
            return true;
    return false;
}
