#include "backend/slurm_private.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096         /* nodes of a run; further ones are passed over */
#define BACKLOG (1024 * 1024)  /* of a file; before that it is passed over */
#define SILENT 10.0 /* seconds, or three periods, after which samples are not expected any more */
#define LOOK (4 * 1024 * 1024) /* of all files in one look, but in the last */

/* The samples of one node. */
struct file {
    char *name;
    int64_t offset;
    bool midline; /* the rest of the line that begins before is to be passed over */
};

struct dt_usage_feed {
    char *dir;
    double period;
    struct dt_gather *gather;
    struct file *files;
    size_t n, turn; /* turn: where the last look stopped short */
    double next;    /* monotonic: the next look */
    struct dt_step_watch *steps; /* NULL: Slurm is not asked */
    double ask_from; /* monotonic: before that it is not, or never where there are samples */
    bool spare;
};

struct dt_usage_feed *dt_usage_feed_new(const char *dir, double period, const struct dt_trial *t,
                                        struct dt_step_watch *steps, bool spare)
{
    struct dt_usage_feed *f = dt_xcalloc(1, sizeof(*f));
    f->steps = steps;
    f->spare = spare;
    f->ask_from = spare ? dt_monotonic() + fmax(SILENT, 3 * period) : 0;
    f->dir = dt_xstrdup(dir);
    f->period = period;
    f->gather = dt_gather_new(period, isnan(t->t_started) ? dt_now() : t->t_started);
    for (size_t i = 0; i < t->usage.n; i++) {
        const struct dt_role_usage *r = &t->usage.v[i];
        if (r->n)
            dt_gather_resume(f->gather, r->role, &r->recent[r->n - 1]);
    }
    return f;
}

void dt_usage_feed_free(struct dt_usage_feed *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        free(f->files[i].name);
    free(f->files);
    free(f->dir);
    dt_gather_free(f->gather);
    dt_step_watch_free(f->steps);
    free(f);
}

/* ---- files ---- */

static bool is_known(const struct dt_usage_feed *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->files[i].name, name) == 0)
            return true;
    return false;
}

static void find_files(struct dt_usage_feed *f)
{
    DIR *d = opendir(f->dir);
    for (struct dirent *entry; d && (entry = readdir(d)) && f->n < FILES_MAX;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".jsonl") != 0 || is_known(f, entry->d_name))
            continue;
        f->files = dt_xrealloc(f->files, f->n + 1, sizeof(*f->files));
        f->files[f->n++] = (struct file){.name = dt_xstrdup(entry->d_name)};
    }
    if (d)
        closedir(d);
}

/* Takes the whole lines of a piece; the rest is read again once it is whole. */
static void take_lines(struct dt_usage_feed *f, struct file *file, char *piece, size_t n)
{
    size_t at = 0;
    double now = dt_now();
    for (char *end; (end = memchr(piece + at, '\n', n - at)); at = (size_t)(end - piece) + 1) {
        *end = '\0';
        if (!file->midline && (size_t)(end - piece) - at <= DT_SAMPLE_LINE_MAX)
            dt_gather_line(f->gather, piece + at, now);
        file->midline = false;
    }
    if (n - at > DT_SAMPLE_LINE_MAX) {
        file->midline = true;
        at = n;
    }
    file->offset += (int64_t)at;
}

/* Returns how much was read. */
static size_t read_file(struct dt_usage_feed *f, struct file *file)
{
    char *path = dt_xasprintf("%s/%s", f->dir, file->name);
    int fd = dt_open_regular(path);
    struct stat st;
    ssize_t n = 0;
    free(path);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && st.st_size > file->offset) {
        if (st.st_size - file->offset > BACKLOG) {
            file->offset = st.st_size - BACKLOG;
            file->midline = true;
        }
        size_t want = (size_t)(st.st_size - file->offset);
        char *piece = dt_xcalloc(want, 1);
        n = pread(fd, piece, want, file->offset);
        if (n > 0)
            take_lines(f, file, piece, (size_t)n);
        free(piece);
    }
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* Returns whether every file was read to its end. */
static bool read_files(struct dt_usage_feed *f, bool to_end)
{
    size_t bytes = 0, done = 0;
    for (; done < f->n && (to_end || bytes < LOOK); done++)
        bytes += read_file(f, &f->files[(f->turn + done) % f->n]);
    f->turn = f->n ? (f->turn + done) % f->n : 0;
    return done == f->n;
}

/* ---- events ---- */

void dt_usage_feed_read(struct dt_usage_feed *f, const struct dt_trial *t, bool to_end,
                        struct dt_event **events, size_t *n)
{
    const struct dt_events out = {events, n};
    double now = dt_monotonic();
    if (!to_end && now < f->next)
        return;
    f->next = now + f->period / 2;
    find_files(f);
    if (!read_files(f, to_end))
        return; /* a node that was not read yet may know of a period that seems to be over */
    bool ask = f->steps && !to_end && now >= f->ask_from && !(f->spare && f->n);
    if (ask)
        dt_step_watch_look(f->steps, f->period, f->gather);
    struct dt_told *told;
    size_t n_told = dt_gather_tell(f->gather, dt_now(), to_end, &told);
    for (size_t i = 0; i < n_told; i++) {
        struct dt_event *ev = dt_events_add(&out, DT_EVENT_USAGE, t, told[i].u.t);
        ev->text = dt_xstrdup(told[i].role);
        ev->usage = told[i].u;
    }
    free(told);
}
