#include "tuner/tuner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct dt_journal {
    int fd;
    char *path;
};

#define JOURNAL_MAX ((size_t)1 << 30)

/* Gives each record to `each`. Returns the length of what is sound: a last line without newline was
 * torn by a crash. */
static ssize_t replay(const char *text, size_t len, const char *path,
                      int (*each)(void *arg, struct json_object *record, struct dt_error *e),
                      void *arg, struct dt_error *e)
{
    const char *s = text, *end;
    for (size_t line = 1; (end = memchr(s, '\n', len - (size_t)(s - text))); line++, s = end + 1) {
        char *one = dt_xstrndup(s, (size_t)(end - s));
        struct json_object *record = dt_json_parse(one, "record", e);
        free(one);
        int rc = record ? each(arg, record, e) : -1;
        json_object_put(record);
        if (rc < 0)
            return dt_fail_at(e, "%s:%zu: the journal is damaged", path, line);
    }
    return s - text;
}

int dt_journal_read(const char *path,
                    int (*each)(void *arg, struct json_object *record, struct dt_error *e),
                    void *arg, struct dt_error *e)
{
    size_t len;
    char *text = dt_read_file(path, JOURNAL_MAX, &len, e);
    ssize_t sound = text ? replay(text, len, path, each, arg, e) : -1;
    free(text);
    return sound < 0 ? -1 : 0;
}

struct dt_journal *dt_journal_open(const char *path,
                                   int (*each)(void *arg, struct json_object *record,
                                               struct dt_error *e),
                                   void *arg, struct dt_error *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        dt_fail(e, "%s: %s", path, strerror(errno));
        return NULL;
    }
    /* Advisory, and not on every network file system: the real guard is that one job owns the
     * folder. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        dt_fail(e, "%s: another tuner is writing it; wait for its job to end or cancel it", path);
        close(fd);
        errno = EWOULDBLOCK;
        return NULL;
    }
    size_t len;
    char *text = dt_read_fd(fd, path, JOURNAL_MAX, &len, e);
    ssize_t sound = text ? replay(text, len, path, each, arg, e) : -1;
    if (sound >= 0 && ftruncate(fd, sound) < 0) {
        dt_fail(e, "%s: cannot cut off a torn record: %s", path, strerror(errno));
        sound = -1;
    }
    free(text);
    if (sound < 0) {
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    struct dt_journal *j = dt_xcalloc(1, sizeof(*j));
    j->fd = fd;
    j->path = dt_xstrdup(path);
    return j;
}

int dt_journal_append(struct dt_journal *j, struct json_object *record, struct dt_error *e)
{
    char *text = dt_json_text(record), *line = dt_xasprintf("%s\n", text);
    size_t len = strlen(line), done = 0;
    off_t before = lseek(j->fd, 0, SEEK_END);
    int rc = 0;
    while (done < len && rc == 0) {
        ssize_t n = write(j->fd, line + done, len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            rc = dt_fail(e, "%s: cannot write: %s; no trial is started without a record", j->path,
                         strerror(errno));
    }
    if (rc == 0 && fsync(j->fd) < 0 && errno != EINVAL)
        rc = dt_fail(e, "%s: cannot write: %s", j->path, strerror(errno));
    if (rc < 0 && before >= 0 &&
        ftruncate(j->fd, before) < 0) /* what a later record must not follow */
        dt_fail_at(e, "half a record is left");
    free(text);
    free(line);
    return rc;
}

void dt_journal_close(struct dt_journal *j)
{
    if (!j)
        return;
    close(j->fd);
    free(j->path);
    free(j);
}
