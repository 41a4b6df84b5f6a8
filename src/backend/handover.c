/* A parent's checkpoint folder, copied for the trial that goes on from it.
 *
 * The parent may be running: its program puts complete files in place by rename(), but the folder
 * may change while it is copied. So it is copied to a temporary folder, which counts only if the
 * source is afterwards as it was before. */
#include "backend/slurm_private.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 5
#define PAUSE 20000 /* microseconds before the second try, twice as long before each next */
#define PIECE (1024 * 1024 * 1024) /* bytes for the kernel to copy in one call */

/* ---- walking a folder: links are never followed ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Calls `each` for everything below a folder, with its path there ("" for the folder itself),
 * folders before and after (FTS_D, FTS_DP) what they hold. A folder that is not there has nothing.
 */
static int walk(const char *folder, int (*each)(void *arg, const FTSENT *ent, const char *rel),
                void *arg)
{
    char *roots[] = {(char *)folder, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    size_t n = strlen(folder);
    int rc = fts ? 0 : -1;
    for (FTSENT *ent; rc == 0 && (errno = 0, ent = fts_read(fts));) {
        bool failed =
            ent->fts_info == FTS_DNR || ent->fts_info == FTS_ERR || ent->fts_info == FTS_NS;
        bool missing = failed && ent->fts_errno == ENOENT && ent->fts_level == 0;
        const char *rel = ent->fts_path + n;
        if (failed && !missing) {
            errno = ent->fts_errno;
            rc = -1;
        } else if (!missing) {
            rc = each(arg, ent, rel + (*rel == '/'));
        }
    }
    if (rc == 0 && errno)
        rc = -1;
    int saved = errno;
    if (fts)
        fts_close(fts);
    errno = saved;
    return rc;
}

/* What there is: equal before and after means unchanged. */
struct listing {
    struct dt_buf text;
    size_t files;
};

static int list_one(void *arg, const FTSENT *ent, const char *rel)
{
    struct listing *l = arg;
    const struct stat *st = ent->fts_statp;
    if (ent->fts_info == FTS_DP)
        return 0;
    l->files += ent->fts_info == FTS_F;
    dt_buf_addf(&l->text, "%s %o %lu %lld %lld.%09ld\n", rel, st->st_mode,
                (unsigned long)st->st_ino, (long long)(ent->fts_info == FTS_F ? st->st_size : 0),
                (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    return 0;
}

static int remove_one(void *arg, const FTSENT *ent, const char *rel)
{
    (void)arg;
    (void)rel;
    if (ent->fts_info == FTS_D)
        return 0;
    return ent->fts_info == FTS_DP ? rmdir(ent->fts_accpath) : unlink(ent->fts_accpath);
}

/* ---- copying ---- */

static int copy_by_hand(int from, int to)
{
    char *buffer = dt_xcalloc(1, 1024 * 1024);
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = read(from, buffer, 1024 * 1024)) != 0)
        if (n > 0)
            rc = dt_write_all(to, buffer, (size_t)n);
        else if (errno != EINTR)
            rc = -1;
    free(buffer);
    return rc;
}

/* In the kernel, where file systems can by sharing blocks. */
static int copy_data(int from, int to)
{
    for (;;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, PIECE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
            return copy_by_hand(from, to); /* from where both are by now */
        if (n <= 0)
            return (int)n;
    }
}

/* With its time of change: some programs take the latest of several checkpoints. */
static int copy_file(const FTSENT *ent, const char *to)
{
    const struct stat *st = ent->fts_statp;
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    int in = open(ent->fts_accpath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = out < 0 ? -1 : copy_data(in, out);
    if (rc == 0)
        rc = fchmod(out, st->st_mode & 0777) < 0 || futimens(out, times) < 0 ? -1 : 0;
    int saved = errno;
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) < 0 && rc == 0)
        return -1;
    errno = saved;
    return rc;
}

struct copy {
    const char *from, *to, *final; /* folders: the parent's, the temporary one, what that will be */
};

/* A link stays a link; one that names the parent's folder is to name the new one. */
static int copy_link(const struct copy *c, const FTSENT *ent, const char *to)
{
    size_t room = (size_t)ent->fts_statp->st_size + 1, n = strlen(c->from);
    char *target = dt_xcalloc(room + 1, 1);
    ssize_t len = readlink(ent->fts_accpath, target, room);
    int rc = len < 0 ? -1 : 0;
    if (rc == 0 && dt_starts_with(target, c->from) && (target[n] == '/' || !target[n])) {
        char *ours = dt_xasprintf("%s%s", c->final, target + n);
        free(target);
        target = ours;
    }
    if (rc == 0)
        rc = symlink(target, to);
    free(target);
    return rc;
}

static int copy_one(void *arg, const FTSENT *ent, const char *rel)
{
    const struct copy *c = arg;
    char *to = dt_xasprintf("%s%s%s", c->to, *rel ? "/" : "", rel);
    const struct stat *st = ent->fts_statp;
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    int rc = 0; /* sockets and the like are no data */
    if (ent->fts_info == FTS_D)
        rc = mkdir(to, 0700);
    else if (ent->fts_info == FTS_DP)
        rc = chmod(to, (st->st_mode & 0777) | 0700) < 0 || utimensat(AT_FDCWD, to, times, 0) < 0
                 ? -1
                 : 0;
    else if (ent->fts_info == FTS_F)
        rc = copy_file(ent, to);
    else if (ent->fts_info == FTS_SL || ent->fts_info == FTS_SLNONE)
        rc = copy_link(c, ent, to);
    free(to);
    return rc;
}

/* 1: a folder with files in it; 0: nothing; -1: errno. */
static int list(const char *folder, struct listing *l)
{
    *l = (struct listing){DT_BUF_INIT, 0};
    return walk(folder, list_one, l) < 0 ? -1 : l->files > 0;
}

static enum dt_handover try_copy(const struct copy *c)
{
    struct listing before, after = {DT_BUF_INIT, 0};
    int found = list(c->from, &before), rc = found;
    if (found > 0)
        rc = walk(c->to, remove_one, NULL) < 0 ? -1 : walk(c->from, copy_one, (void *)c);
    /* what vanishes while it is looked at is a change too */
    bool vanished = rc < 0 && (errno == ENOENT || errno == ESTALE);
    enum dt_handover done = vanished ? DT_HANDOVER_BUSY
                            : rc < 0 ? DT_HANDOVER_FAILED
                                     : DT_HANDOVER_DONE;
    if (found == 0)
        done = DT_HANDOVER_NOTHING;
    if (done == DT_HANDOVER_DONE && list(c->from, &after) >= 0 &&
        (!after.text.s || strcmp(before.text.s, after.text.s) != 0)) /* nothing: it is gone */
        done = DT_HANDOVER_BUSY;
    if (done == DT_HANDOVER_DONE && rename(c->to, c->final) < 0)
        done = DT_HANDOVER_FAILED;
    int saved = errno;
    dt_buf_free(&before.text);
    dt_buf_free(&after.text);
    errno = saved;
    return done;
}

enum dt_handover dt_handover(const char *from, const char *to, struct dt_error *e)
{
    struct listing there;
    char *temporary = dt_xasprintf("%s.tmp", to);
    const struct copy c = {from, temporary, to};
    int found = list(to, &there);
    enum dt_handover done = found < 0   ? DT_HANDOVER_FAILED
                            : found > 0 ? DT_HANDOVER_DONE
                                        : DT_HANDOVER_BUSY;
    for (int i = 0; i < TRIES && done == DT_HANDOVER_BUSY; i++) {
        if (i > 0)
            usleep((useconds_t)PAUSE << (i - 1));
        done = try_copy(&c);
    }
    if (done == DT_HANDOVER_FAILED)
        dt_fail(e, "the checkpoint %s cannot be copied to %s: %s", from, to, strerror(errno));
    if (done != DT_HANDOVER_DONE)
        walk(temporary, remove_one, NULL);
    dt_buf_free(&there.text);
    free(temporary);
    return done;
}
