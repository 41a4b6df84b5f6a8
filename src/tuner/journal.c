#include "tuner/tuner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

struct dt_journal {
    int fd;
    char *path;
    bool begun;
    char *note;
};

#define JOURNAL_MAX ((size_t)1 << 30)
/* So many records at the end may be damaged: what they told is to be had again from the trials'
 * folders, from Slurm and from the search, which is repeatable. Of older ones Slurm may know
 * nothing any more. */
#define TAIL 3

/* Each record ends with its check, the CRC-32 (zlib's) of the record without it. */
#define CHECK_FORMAT ",\"crc\":\"%08lx\"}"
#define CHECK_LENGTH 18

static unsigned long check_of(const char *text, size_t len)
{
    unsigned long crc = crc32(0, (const unsigned char *)text, (unsigned)len);
    return crc32(crc, (const unsigned char *)"}", 1);
}

static char *with_check(const char *record)
{
    size_t body = strlen(record) - 1; /* without the closing brace */
    return dt_xasprintf("%.*s" CHECK_FORMAT "\n", (int)body, record, check_of(record, body));
}

/* A line without a check, as versions before had them and people write them, has to be JSON. */
static bool is_sound(const char *line, size_t len, struct dt_error *e)
{
    if (len > CHECK_LENGTH && memcmp(line + len - CHECK_LENGTH, CHECK_FORMAT, 8) == 0) {
        size_t body = len - CHECK_LENGTH;
        char *check = dt_xasprintf(CHECK_FORMAT, check_of(line, body));
        bool same = memcmp(check, line + body, CHECK_LENGTH) == 0;
        free(check);
        return same || dt_fail(e, "record: it is not what was written") == 0;
    }
    char *one = dt_xstrndup(line, len);
    struct json_object *record = dt_json_parse(one, "record", e);
    bool is_record = json_object_is_type(record, json_type_object) && strlen(one) == len;
    if (record && !is_record)
        dt_fail(e, "record: it is no JSON object");
    free(one);
    json_object_put(record);
    return is_record;
}

/* What can be relied on of a journal, in bytes. A last line without newline was torn by a crash;
 * damage before that leaves `bad` records over, from line `line` on, and says in e what it is. */
static size_t sound_part(const char *text, size_t len, size_t *line, size_t *bad,
                         struct dt_error *e)
{
    const char *s = text, *end;
    *bad = 0;
    for (*line = 1; (end = memchr(s, '\n', len - (size_t)(s - text))); ++*line, s = end + 1)
        if (!is_sound(s, (size_t)(end - s), e))
            break;
    for (const char *rest = s; (end = memchr(rest, '\n', len - (size_t)(rest - text)));
         rest = end + 1)
        ++*bad;
    return (size_t)(s - text);
}

/* Gives each record to `each`. Returns the length of what is sound, and in `note` (caller frees)
 * what of the rest was more than torn. */
static ssize_t replay(const char *text, size_t len, const char *path,
                      int (*each)(void *arg, struct json_object *record, struct dt_error *e),
                      void *arg, char **note, struct dt_error *e)
{
    size_t line, bad, sound = sound_part(text, len, &line, &bad, e);
    if (bad && (bad > TAIL || line == 1))
        return dt_fail_at(e, "%s:%zu: the journal is damaged", path, line);
    if (bad)
        *note =
            dt_xasprintf("%s:%zu: damaged (%s); its last %zu record%s set aside in %s.damaged, and "
                         "what happened then is found out anew",
                         path, line, e->text, bad, bad == 1 ? " is" : "s are", path);
    dt_error_clear(e);
    const char *s = text, *end;
    for (line = 1; s < text + sound; line++, s = end + 1) {
        end = memchr(s, '\n', len - (size_t)(s - text));
        char *one = dt_xstrndup(s, (size_t)(end - s));
        struct json_object *record = dt_json_parse(one, "record", e);
        free(one);
        if (record) /* a right check does not make it JSON */
            json_object_object_del(record, "crc");
        int rc = record ? each(arg, record, e) : -1;
        json_object_put(record);
        if (rc < 0)
            return dt_fail_at(e, "%s:%zu: the journal is damaged", path, line);
    }
    return (ssize_t)sound;
}

int dt_journal_read(const char *path,
                    int (*each)(void *arg, struct json_object *record, struct dt_error *e),
                    void *arg, struct dt_error *e)
{
    size_t len;
    char *note = NULL, *text = dt_read_file(path, JOURNAL_MAX, &len, e);
    ssize_t sound = text ? replay(text, len, path, each, arg, &note, e) : -1;
    free(note);
    free(text);
    return sound < 0 ? -1 : 0;
}

/* Nothing is thrown away, not even what cannot be read, nor what was set aside before: it is added
 * to that. */
static int set_aside(const char *path, const char *text, size_t len, struct dt_error *e)
{
    char *aside = dt_xasprintf("%s.damaged", path);
    struct dt_buf all = DT_BUF_INIT;
    size_t before = 0;
    bool more = access(aside, F_OK) == 0;
    char *kept = more ? dt_read_file(aside, JOURNAL_MAX, &before, e) : NULL;
    int rc = more && !kept ? -1 : 0;
    if (kept)
        dt_buf_addn(&all, kept, before);
    if (before && kept[before - 1] != '\n')
        dt_buf_add(&all, "\n");
    dt_buf_addn(&all, text, len);
    if (rc == 0)
        rc = dt_write_file(aside, all.s, all.len, 0666, e);
    dt_buf_free(&all);
    free(kept);
    free(aside);
    return rc;
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
    char *note = NULL, *text = dt_read_fd(fd, path, JOURNAL_MAX, &len, e);
    ssize_t sound = text ? replay(text, len, path, each, arg, &note, e) : -1;
    if (sound >= 0 && note && set_aside(path, text + sound, len - (size_t)sound, e) < 0)
        sound = -1;
    if (sound >= 0 && ftruncate(fd, sound) < 0) {
        dt_fail(e, "%s: cannot cut off a torn record: %s", path, strerror(errno));
        sound = -1;
    }
    free(text);
    if (sound < 0) {
        free(note);
        close(fd);
        errno = EINVAL;
        return NULL;
    }
    struct dt_journal *j = dt_xcalloc(1, sizeof(*j));
    j->fd = fd;
    j->path = dt_xstrdup(path);
    j->begun = sound > 0;
    j->note = note;
    return j;
}

bool dt_journal_begun(const struct dt_journal *j)
{
    return j->begun;
}

const char *dt_journal_note(const struct dt_journal *j)
{
    return j->note;
}

/* Records would go on into the folder where it is now, and all else be written where it was. */
static bool was_moved(const struct dt_journal *j, struct dt_error *e)
{
    if (access(j->path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return false;
    dt_fail(e,
            "%s: is not there any more: its folder was moved or removed meanwhile; go on with the "
            "study by --dt-resume and where the folder is now",
            j->path);
    return true;
}

int dt_journal_append(struct dt_journal *j, struct json_object *record, struct dt_error *e)
{
    if (was_moved(j, e))
        return -1;
    char *text = dt_json_text(record), *line = with_check(text);
    off_t before = lseek(j->fd, 0, SEEK_END);
    int rc = 0;
    if (dt_write_all(j->fd, line, strlen(line)) < 0)
        rc = dt_fail(e, "%s: cannot write: %s; no trial is started without a record", j->path,
                     strerror(errno));
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
    free(j->note);
    free(j);
}
