#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *dt_read_fd(int fd, const char *what, size_t max, size_t *len, struct dt_error *e)
{
    struct dt_buf b = DT_BUF_INIT;
    char chunk[65536];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            dt_fail(e, "%s: cannot read: %s", what, strerror(errno));
            dt_buf_free(&b);
            return NULL;
        }
        dt_buf_addn(&b, chunk, (size_t)n);
        if (b.len > max) {
            dt_fail(e, "%s: larger than the limit of %zu KiB", what, max / 1024);
            dt_buf_free(&b);
            return NULL;
        }
    }
    if (len)
        *len = b.len;
    return dt_buf_take(&b);
}

char *dt_read_file(const char *path, size_t max, size_t *len, struct dt_error *e)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO without a writer must not hang us in open() */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        dt_fail(e, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    if (fstat(fd, &st) < 0)
        dt_fail(e, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        dt_fail(e, "%s: is a directory, a file is needed", path);
    else if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
        dt_fail(e, "%s: is not a regular file", path);
    else if (fcntl(fd, F_SETFL, 0) < 0)
        dt_fail(e, "%s: %s", path, strerror(errno));
    else
        text = dt_read_fd(fd, path, max, len, e);
    close(fd);
    return text;
}

char *dt_read_text(const char *path, size_t max, struct dt_error *e)
{
    size_t len;
    char *text = dt_read_file(path, max, &len, e);
    if (text && strlen(text) != len) {
        dt_fail(e, "%s: holds a NUL byte (byte %zu): this is no text file", path, strlen(text) + 1);
        free(text);
        return NULL;
    }
    return text;
}

int dt_open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    return -1;
}

int dt_write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int dt_write_file(const char *path, const char *data, size_t len, unsigned mode, struct dt_error *e)
{
    char *tmp = dt_xasprintf("%s.tmp.%ld", path, (long)getpid());
    unlink(tmp); /* of a process long dead; or a link, that leads elsewhere */
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int rc = -1;
    if (fd >= 0) {
        rc = dt_write_all(fd, data, len);
        if (rc == 0)
            rc = fsync(fd);
        int saved = errno;
        if (close(fd) < 0 && rc == 0)
            rc = -1;
        else
            errno = saved;
        if (rc == 0)
            rc = rename(tmp, path);
        if (rc < 0) {
            saved = errno;
            unlink(tmp);
            errno = saved;
        }
    }
    if (rc < 0)
        dt_fail(e, "%s: cannot write: %s", path, strerror(errno));
    free(tmp);
    return rc < 0 ? -1 : 0;
}

int dt_mkdirs(const char *path, struct dt_error *e)
{
    if (!*path)
        return dt_fail(e, "cannot create a directory without a name");
    char *p = dt_xstrdup(path);
    int rc = 0;
    for (char *s = p + 1; rc == 0; s++) {
        if (*s != '/' && *s)
            continue;
        char c = *s;
        *s = '\0';
        struct stat st;
        if (mkdir(p, 0777) < 0 && (errno != EEXIST || stat(p, &st) < 0 || !S_ISDIR(st.st_mode)))
            rc = dt_fail(e, "%s: cannot create the directory: %s", p,
                         errno == EEXIST ? "a file of that name is there" : strerror(errno));
        *s = c;
        if (!c)
            break;
    }
    free(p);
    return rc;
}

int dt_mkdir_private(const char *path, struct dt_error *e)
{
    struct stat st;
    char *parent = dt_xstrdup(path), *slash = strrchr(parent, '/');
    int rc = 0;
    if (stat(path, &st) == 0) {
        rc = S_ISDIR(st.st_mode) ? 0 : dt_fail(e, "%s: is not a directory", path);
    } else {
        if (slash && slash != parent) {
            *slash = '\0';
            rc = dt_mkdirs(parent, e);
        }
        if (rc == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
            rc = dt_fail(e, "%s: cannot create the directory: %s", path, strerror(errno));
    }
    free(parent);
    return rc;
}

char *dt_self_exe(struct dt_error *e)
{
    static const char deleted[] = " (deleted)"; /* as Linux says it */
    char *path = realpath("/proc/self/exe", NULL), link[PATH_MAX + sizeof(deleted)];
    if (path || errno != ENOENT)
        goto out;
    ssize_t n = readlink("/proc/self/exe", link, sizeof(link));
    size_t end = n < 0 ? 0 : (size_t)n, tail = sizeof(deleted) - 1;
    if (end > tail && memcmp(link + end - tail, deleted, tail) == 0)
        path = dt_xstrndup(link, end - tail);
out:
    if (!path)
        dt_fail(e, "cannot find this program's own path: /proc/self/exe: %s", strerror(errno));
    return path;
}

char *dt_self_dir(struct dt_error *e)
{
    char *path = dt_self_exe(e);
    if (path)
        *strrchr(path, '/') = '\0';
    return path;
}

char *dt_find_program(const char *name, const char *not_this)
{
    struct dt_strv dirs = DT_STRV_INIT;
    char *found = NULL;
    const char *path = getenv("PATH");
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? dt_xstrdup(name) : NULL;
    dt_strv_split(&dirs, path ? path : "/usr/local/bin:/usr/bin:/bin", ":");
    for (size_t i = 0; i < dirs.n && !found; i++) {
        struct stat st;
        char *candidate = dt_xasprintf("%s/%s", dirs.v[i], name);
        char *real = realpath(candidate, NULL);
        if (real && access(candidate, X_OK) == 0 && stat(candidate, &st) == 0 &&
            S_ISREG(st.st_mode) && !(not_this && strcmp(real, not_this) == 0))
            found = dt_xstrdup(candidate);
        free(real);
        free(candidate);
    }
    dt_strv_free(&dirs);
    return found;
}
