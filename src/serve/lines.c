#include "serve/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((size_t)64 * 1024)
/* Of input more is left in the pipe, so that a flood of requests waits on its own side. */
#define INPUT_MAX (4 * DT_LINE_MAX)
/* With so much output waiting, what can be spared is. */
#define OUTPUT_MAX (4 * DT_LINE_MAX)
#define LOOK 0.05 /* seconds between looks at how the last lines are taken */

struct dt_lines {
    int in_fd, out_fd, wake_fd;
    int end[2]; /* a pipe: both threads are to end */
    pthread_t reader, writer;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct dt_buf in, out;
    size_t in_at, out_at; /* what comes before is done with */
    bool in_end, gone, quit;
    bool skipping; /* the rest of a line that is too long */
};

static void wake(const struct dt_lines *l)
{
    if (l->wake_fd >= 0 && write(l->wake_fd, "", 1) < 0)
        (void)0; /* full: the caller will wake all the same */
}

/* Drops what is done with, once that is worth moving the rest. */
static void compact(struct dt_buf *b, size_t *at)
{
    if (!*at || (*at < b->len && *at < CHUNK))
        return;
    memmove(b->s, b->s + *at, b->len - *at);
    b->len -= *at;
    *at = 0;
}

/* Only does what need not be waited for, once it can be done: until then the end is looked out for
 * too. */
static ssize_t transfer(const struct dt_lines *l, char *data, size_t n, bool out)
{
    int fd = out ? l->out_fd : l->in_fd;
    struct pollfd p[] = {{fd, out ? POLLOUT : POLLIN, 0}, {l->end[0], POLLIN, 0}};
    if (poll(p, 2, -1) < 0)
        return -1;
    if (p[1].revents) {
        errno = EINTR;
        return -1;
    }
    if (!out)
        return read(fd, data, n);
    ssize_t done = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    /* a pipe that is ready takes so much at once */
    return done < 0 && errno == ENOTSOCK ? write(fd, data, n < PIPE_BUF ? n : PIPE_BUF) : done;
}

static void *read_all(void *arg)
{
    struct dt_lines *l = arg;
    char chunk[CHUNK];
    for (bool end = false; !end;) {
        ssize_t n = transfer(l, chunk, sizeof(chunk), false);
        pthread_mutex_lock(&l->lock);
        if (n > 0)
            dt_buf_addn(&l->in, chunk, (size_t)n);
        l->in_end = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
        while (l->in.len - l->in_at > INPUT_MAX && !l->quit)
            pthread_cond_wait(&l->changed, &l->lock);
        end = l->in_end || l->quit;
        pthread_mutex_unlock(&l->lock);
        wake(l);
    }
    return NULL;
}

static void *write_all(void *arg)
{
    struct dt_lines *l = arg;
    char chunk[CHUNK];
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->out_at == l->out.len && !l->quit)
            pthread_cond_wait(&l->changed, &l->lock);
        if (l->out_at == l->out.len)
            break;
        size_t n = l->out.len - l->out_at < CHUNK ? l->out.len - l->out_at : CHUNK;
        memcpy(chunk, l->out.s + l->out_at, n);
        pthread_mutex_unlock(&l->lock);
        ssize_t done = transfer(l, chunk, n, true);
        bool lost = done < 0 && errno != EINTR && errno != EAGAIN;
        pthread_mutex_lock(&l->lock);
        l->gone |= lost;
        l->out_at = l->gone || l->quit ? l->out.len : l->out_at + (size_t)(done > 0 ? done : 0);
        compact(&l->out, &l->out_at);
        if (lost)
            wake(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are for the tuner; that nobody reads is an error like others. */
static int start(pthread_t *t, void *(*run)(void *), struct dt_lines *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(t, NULL, run, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static void end_threads(struct dt_lines *l, bool both)
{
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    l->out_at = l->out.len;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    close(l->end[1]);
    pthread_join(l->reader, NULL);
    if (both)
        pthread_join(l->writer, NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    close(l->end[0]);
    dt_buf_free(&l->in);
    dt_buf_free(&l->out);
    free(l);
}

struct dt_lines *dt_lines_new(int in_fd, int out_fd, int wake_fd, struct dt_error *e)
{
    struct dt_lines *l = dt_xcalloc(1, sizeof(*l));
    l->in_fd = in_fd;
    l->out_fd = out_fd;
    l->wake_fd = wake_fd;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    int rc = pipe2(l->end, O_CLOEXEC) < 0 ? errno : 0,
        reader = rc ? rc : start(&l->reader, read_all, l);
    if (reader == 0 && start(&l->writer, write_all, l) == 0)
        return l;
    dt_fail(e, "cannot start a thread: %s", strerror(reader ? reader : EAGAIN));
    if (reader == 0) {
        end_threads(l, false);
        return NULL;
    }
    if (rc == 0) {
        close(l->end[0]);
        close(l->end[1]);
    }
    free(l);
    return NULL;
}

/* Up to the end of the line that is too long, or of what is there of it. */
static void skip(struct dt_lines *l)
{
    const char *from = l->in.s + l->in_at, *end = memchr(from, '\n', l->in.len - l->in_at);
    l->in_at = end ? (size_t)(end + 1 - l->in.s) : l->in.len;
    l->skipping = !end;
}

static enum dt_line next_of(struct dt_lines *l, char **line, size_t *len)
{
    if (l->skipping && l->in_at < l->in.len)
        skip(l);
    size_t left = l->in.len - l->in_at;
    const char *from = left ? l->in.s + l->in_at : NULL,
               *end = left ? memchr(from, '\n', left) : NULL;
    *len = end ? (size_t)(end - from) : left;
    if (*len > DT_LINE_MAX) {
        skip(l);
        return DT_LINE_TOO_LONG;
    }
    if (!end && !l->in_end)
        return DT_LINE_NONE;
    if (!left)
        return DT_LINE_END;
    struct dt_buf whole = DT_BUF_INIT; /* there may be NULs in it */
    dt_buf_addn(&whole, from, *len);
    *line = dt_buf_take(&whole);
    l->in_at += *len + (end != NULL);
    return DT_LINE_ONE;
}

enum dt_line dt_lines_next(struct dt_lines *l, char **line, size_t *len)
{
    *line = NULL;
    pthread_mutex_lock(&l->lock);
    enum dt_line kind = next_of(l, line, len);
    compact(&l->in, &l->in_at);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return kind;
}

void dt_lines_put(struct dt_lines *l, const char *line, bool can_be_spared)
{
    pthread_mutex_lock(&l->lock);
    bool full = l->out.len - l->out_at > OUTPUT_MAX;
    if (!l->gone && !(full && can_be_spared))
        dt_buf_addf(&l->out, "%s\n", line);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

bool dt_lines_gone(struct dt_lines *l)
{
    pthread_mutex_lock(&l->lock);
    bool gone = l->gone;
    pthread_mutex_unlock(&l->lock);
    return gone;
}

static size_t waiting(struct dt_lines *l)
{
    pthread_mutex_lock(&l->lock);
    size_t n = l->out.len - l->out_at;
    pthread_mutex_unlock(&l->lock);
    return n;
}

void dt_lines_free(struct dt_lines *l, double patience, const volatile int *stop)
{
    if (!l)
        return;
    double since = dt_monotonic();
    size_t left = waiting(l);
    while (left && dt_monotonic() - since < patience && !(stop && *stop)) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * LOOK)}, NULL);
        size_t now = waiting(l);
        since = now < left ? dt_monotonic() : since;
        left = now;
    }
    end_threads(l, true);
}
