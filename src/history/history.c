#include "conf/limits.h"
#include "history/history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".jsonl"
/* How long to wait for others that append: a study that has ended must not hang for its history's
 * sake, and one that Slurm ends has 30 s for everything (KillWait). */
#define LOCK_SECONDS 20.0

/* ---- where ---- */

static char *absolute(char *path)
{
    char *cwd = path && path[0] != '/' ? getcwd(NULL, 0) : NULL;
    if (!cwd)
        return path;
    char *full = dt_xasprintf("%s/%s", cwd, path);
    free(cwd);
    free(path);
    return full;
}

char *dt_history_dir(void)
{
    const char *own = getenv("DT_TUNE_HISTORY"), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        return absolute(dt_xstrdup(own));
    char *given = dt_conf_history();
    if (given)
        return given;
    if (data && *data == '/') /* the standard has relative ones ignored */
        return dt_xasprintf("%s/dt-tune/history", data);
    const struct passwd *user = home && *home ? NULL : getpwuid(getuid());
    if (user)
        home = user->pw_dir;
    return home && *home ? absolute(dt_xasprintf("%s/.local/share/dt-tune/history", home)) : NULL;
}

/* ---- writing ---- */

/* 0: locked, or no lock can be had on this file system, where one write() at the end has to do. */
static int lock(int fd, const char *path, struct dt_error *e)
{
    double end = dt_monotonic() + LOCK_SECONDS;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno != ENOLCK && errno != EOPNOTSUPP &&
           errno != EINVAL) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return dt_fail(e, "%s: cannot lock: %s", path, strerror(errno));
        if (dt_monotonic() > end)
            return dt_fail(e, "%s: others have been writing it for %g seconds", path, LOCK_SECONDS);
        usleep(20000);
    }
    return 0;
}

/* What a writer that crashed has left without an end must not be continued. */
static bool is_torn(int fd, off_t size)
{
    char last;
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static int write_line(int fd, const char *path, const char *line, struct dt_error *e)
{
    off_t before = lseek(fd, 0, SEEK_END);
    struct dt_buf b = DT_BUF_INIT;
    size_t done = 0;
    int failed = 0;
    dt_buf_addf(&b, "%s%s\n", is_torn(fd, before) ? "\n" : "", line);
    while (done < b.len && !failed) {
        ssize_t n = write(fd, b.s + done, b.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            failed = errno;
    }
    if (!failed && fsync(fd) < 0 && errno != EINVAL)
        failed = errno;
    dt_buf_free(&b);
    if (failed && before >= 0 && ftruncate(fd, before) < 0)
        failed = errno; /* half a line stays; readers pass over it */
    return failed ? dt_fail(e, "%s: cannot write: %s", path, strerror(failed)) : 0;
}

/* Opens and locks the file of that name as it is now: the one that was there may have been pruned
 * while this waited. */
static int open_locked(const char *path, struct dt_error *e)
{
    struct stat mine, now;
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
        if (fd < 0)
            return dt_fail(e, "%s: %s", path, strerror(errno));
        if (lock(fd, path, e) < 0) {
            close(fd);
            return -1;
        }
        if (fstat(fd, &mine) == 0 && stat(path, &now) == 0 && mine.st_ino == now.st_ino)
            return fd;
        close(fd);
    }
}

int dt_history_append(const char *dir, struct json_object *record, struct dt_error *e)
{
    char *line = dt_json_text(record);
    char *path = dt_xasprintf("%s/%s%s", dir, dt_json_str(record, "signature", ""), SUFFIX);
    int fd = dt_mkdir_private(dir, e) == 0 ? open_locked(path, e) : -1;
    int rc = fd < 0 ? -1 : write_line(fd, path, line, e);
    if (fd >= 0)
        close(fd);
    free(path);
    free(line);
    return rc;
}

/* ---- reading ---- */

static bool same_study(struct json_object *a, struct json_object *b)
{
    return strcmp(dt_json_str(a, "study", ""), dt_json_str(b, "study", "")) == 0 &&
           strcmp(dt_json_str(a, "dir", ""), dt_json_str(b, "dir", "")) == 0;
}

static void keep(struct dt_history *h, struct json_object *record)
{
    for (size_t i = 0; i < h->n; i++) {
        if (!same_study(h->v[i], record))
            continue;
        json_object_put(h->v[i]);
        h->v[i] = record;
        return;
    }
    h->v = dt_xrealloc(h->v, h->n + 1, sizeof(*h->v));
    h->v[h->n++] = record;
}

/* NULL, with the reason, where the line is no record of ours. */
static struct json_object *read_record(const char *line, size_t len, struct dt_error *e)
{
    struct json_object *o = NULL;
    if (len == 0 || line[len - 1] != '\n' || strlen(line) != len) {
        dt_fail(e, "it was cut off");
        return NULL;
    }
    o = dt_json_parse(line, "record", e);
    int64_t version = dt_json_int(o, "version", 0);
    if (!o)
        return NULL;
    if (version > 1)
        dt_fail(e, "it is of a newer dt-tune");
    else if (version == 1 && dt_json_str(o, "study", NULL) && dt_json_str(o, "signature", NULL))
        return o;
    else
        dt_fail(e, "it is no record of a study");
    json_object_put(o);
    return NULL;
}

static int read_file(const char *path, bool whole, struct dt_history *h, struct dt_error *e)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0, number = 0;
    if (!f)
        return errno == ENOENT ? 0 : dt_fail(e, "%s: %s", path, strerror(errno));
    for (ssize_t len; (len = getline(&line, &cap, f)) >= 0;) {
        struct dt_error why = DT_ERROR_INIT;
        number++;
        if (len == 1)
            continue;
        struct json_object *record = read_record(line, (size_t)len, &why);
        if (record && !whole) {
            json_object_object_del(record, "observations");
            json_object_object_del(record, "space");
        }
        if (record)
            keep(h, record);
        else
            dt_strv_addf(&h->warnings, "%s:%zu: passed over: %s", path, number, why.text);
        dt_error_clear(&why);
    }
    int rc = ferror(f) ? dt_fail(e, "%s: cannot read: %s", path, strerror(errno)) : 0;
    free(line);
    fclose(f);
    return rc;
}

/* The paths of all files of the history. */
static int list_files(const char *dir, struct dt_strv *paths, struct dt_error *e)
{
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOENT ? 0 : dt_fail(e, "%s: %s", dir, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(d));) {
        size_t len = strlen(entry->d_name), tail = strlen(SUFFIX);
        if (len > tail && strcmp(entry->d_name + len - tail, SUFFIX) == 0)
            dt_strv_addf(paths, "%s/%s", dir, entry->d_name);
    }
    closedir(d);
    return 0;
}

static int read_all(const char *dir, bool whole, struct dt_history *h, struct dt_error *e)
{
    struct dt_strv paths = DT_STRV_INIT;
    int rc = list_files(dir, &paths, e);
    for (size_t i = 0; rc == 0 && i < paths.n; i++)
        rc = read_file(paths.v[i], whole, h, e);
    dt_strv_free(&paths);
    return rc;
}

/* ---- pruning ---- */

struct broom {
    bool (*drop)(void *arg, struct json_object *record);
    void *arg;
    bool pretend;
    size_t n;
};

/* What is to stay of the text. Caller frees. */
static char *sweep(const char *text, struct broom *b)
{
    struct dt_buf kept = DT_BUF_INIT;
    for (const char *s = text; *s;) {
        size_t len = strcspn(s, "\n");
        len += s[len] == '\n';
        char *line = dt_xstrndup(s, len);
        struct json_object *record = read_record(line, len, NULL);
        bool drop = record && b->drop(b->arg, record);
        if (!drop)
            dt_buf_add(&kept, line);
        b->n += drop;
        json_object_put(record);
        free(line);
        s += len;
    }
    return dt_buf_take(&kept);
}

/* The file is replaced as a whole: who reads it sees the old one or the new one. */
static int prune_file(const char *path, struct broom *b, struct dt_error *e)
{
    int fd = open_locked(path, e);
    size_t before = b->n;
    char *text = fd < 0 ? NULL : dt_read_text(path, SIZE_MAX / 2, e);
    char *kept = text ? sweep(text, b) : NULL;
    int rc = kept ? 0 : -1;
    bool change = rc == 0 && b->n > before && !b->pretend;
    if (change && *kept)
        rc = dt_write_file(path, kept, strlen(kept), 0600, e);
    else if (change && unlink(path) < 0)
        rc = dt_fail(e, "%s: %s", path, strerror(errno));
    free(text);
    free(kept);
    if (fd >= 0)
        close(fd);
    return rc;
}

int dt_history_prune(const char *dir, bool (*drop)(void *arg, struct json_object *record),
                     void *arg, bool pretend, size_t *n, struct dt_error *e)
{
    struct dt_strv paths = DT_STRV_INIT;
    struct broom b = {drop, arg, pretend, 0};
    int rc = list_files(dir, &paths, e);
    for (size_t i = 0; rc == 0 && i < paths.n; i++)
        rc = prune_file(paths.v[i], &b, e);
    dt_strv_free(&paths);
    *n = b.n;
    return rc;
}

/* ---- the studies ---- */

static int last_first(const void *a, const void *b)
{
    struct json_object *x = *(struct json_object *const *)a, *y = *(struct json_object *const *)b;
    double s = dt_json_num(x, "time", 0), t = dt_json_num(y, "time", 0);
    if (s != t)
        return s < t ? 1 : -1;
    return strcmp(dt_json_str(x, "study", ""), dt_json_str(y, "study", ""));
}

int dt_history_read(const char *dir, const char *signature, bool whole, struct dt_history *h,
                    struct dt_error *e)
{
    char *path = signature ? dt_xasprintf("%s/%s%s", dir, signature, SUFFIX) : NULL;
    *h = (struct dt_history){0};
    int rc = path ? read_file(path, whole, h, e) : read_all(dir, whole, h, e);
    free(path);
    if (rc < 0)
        dt_history_free(h);
    if (h->n)
        qsort(h->v, h->n, sizeof(*h->v), last_first);
    return rc;
}

void dt_history_free(struct dt_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        json_object_put(h->v[i]);
    free(h->v);
    dt_strv_free(&h->warnings);
    *h = (struct dt_history){0};
}

struct json_object *dt_history_study(const struct dt_history *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(dt_json_str(h->v[i], "study", ""), name) == 0 ||
            strcmp(dt_json_str(h->v[i], "dir", ""), name) == 0)
            return h->v[i];
    return NULL;
}

/* Fewer digits would be met by chance, and by short names. */
#define KEY_DIGITS 6

bool dt_history_has_key(struct json_object *record, const char *key)
{
    const char *own = dt_json_str(record, "key", NULL);
    return (own && strcmp(own, key) == 0) ||
           (strlen(key) >= KEY_DIGITS && dt_starts_with(dt_json_str(record, "signature", ""), key));
}
