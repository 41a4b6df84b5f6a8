/* crash: tuners are killed, their journals damaged and their disks filled, or not to be written on,
 * at every point where that matters, and their clocks jump; each study is then resumed, and must come
 * to what the undisturbed one comes to, with no trial lost, none run twice and none left behind.
 *
 *     tests/campaign/crash [KILLS [SEED]]        (20; 1000 for all points and bytes)
 *
 * In each setting, so many kills at random, and at so many points and bytes, evenly spread over all that there are. Prints
 * TAP. What needs a file system of its own is skipped where none may be mounted. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_rng.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPACE                                                                                      \
    "\"dt\": {\"workers\": {\"low\": 1, \"high\": 80}}, \"hyperparameters\": {\"vm\": "            \
    "[\"t2.small\", \"t2.medium\", \"t2.xlarge\", \"t2.2xlarge\"], \"batch_size\": [16, 256], "    \
    "\"learning_rate\": {\"low\": 1e-5, \"high\": 1e-3, \"log\": true}, "                          \
    "\"sync\": [\"sync\", \"async\"]}, "
#define TIME                                                                                       \
    "\"replay\": {\"map\": {\"workers\": \"n_workers\"}, \"where\": {\"train_set_size\": 60000}, " \
    "\"objective\": \"time_s\"}, "
#define COURSE                                                                                     \
    "\"replay\": {\"map\": {\"workers\": \"n_workers\"}, \"objective\": \"acc\", \"goal\": "       \
    "\"maximize\", \"step\": \"train_set_size\", \"duration\": \"time_s\"}, "

static const struct setting settings[] = {
    {"random, one at a time",
     "{" SPACE TIME "\"search\": {\"algorithm\": \"random\", \"max_configs\": 12, \"min_configs\": 12}}"},
    {"bayes, three at a time",
     "{" SPACE TIME "\"search\": {\"algorithm\": \"bayes\", \"max_configs\": 12, \"parallel\": 3, "
     "\"repeats\": 1}}"},
    {"asha on a course, four at a time",
     "{" SPACE COURSE "\"search\": {\"algorithm\": \"random\", \"max_configs\": 16, \"min_configs\": 16, "
     "\"parallel\": 4, \"repeats\": 0, \"early_stop\": {\"rule\": \"asha\", \"min_step\": 1000, "
     "\"reduction\": 2}}}"},
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

struct campaign {
    const char *table;
    char *dir, *journal, *aside;
    const struct setting *setting;
    char *expected; /* what the undisturbed study came to */
    long points, writes, bytes, kills;
    long disk; /* bytes of a small one */
    gsl_rng *rng;
    int tests, failed;
};

static void say(struct campaign *c, bool ok, const char *what, const char *why)
{
    printf("%sok %d - %s: %s\n", ok ? "" : "not ", ++c->tests, c->setting->name, what);
    if (!ok && why)
        printf("# %s\n", why);
    c->failed += !ok;
}

static struct world *fresh(struct campaign *c)
{
    unlink(c->journal);
    unlink(c->aside);
    return world_new(c->setting, c->table, c->journal);
}

static long roll(struct campaign *c, long n)
{
    return 1 + (long)gsl_rng_uniform_int(c->rng, (unsigned long)n);
}

/* Every so many of n, so that there are about as many as asked for. */
static long stride(const struct campaign *c, long n)
{
    return n > c->kills ? n / c->kills : 1;
}

/* What is wrong with the study after it was resumed and ran to its end: whether it came to the `same` is asked where it has
 * to. NULL: nothing. Caller frees. */
static char *finish(struct campaign *c, struct world *w, double clock, bool same)
{
    struct fate none = {.clock = clock};
    enum outcome o = world_tune(w, &none);
    char *complaint = world_complaint(w);
    if (o != TUNER_DONE) {
        free(complaint);
        return dt_xasprintf("it did not finish: %s", world_last_words(w));
    }
    if (complaint)
        return complaint;
    return !same || strcmp(world_last_words(w), c->expected) == 0
               ? NULL
               : dt_xasprintf("it came to\n%sinstead of\n%s", world_last_words(w), c->expected);
}

static void undisturbed(struct campaign *c)
{
    struct world *w = fresh(c);
    struct fate none = {0};
    enum outcome o = world_tune(w, &none);
    char *complaint = world_complaint(w), *text = dt_read_file(c->journal, SIZE_MAX / 2, NULL, NULL);
    c->expected = dt_xstrdup(world_last_words(w));
    c->points = world_points(w);
    c->writes = 0;
    for (const char *s = text; s && *s; s++)
        c->writes += *s == '\n';
    c->bytes = text ? (long)strlen(text) : 0;
    printf("# %ld points, %ld records\n", c->points, c->writes);
    say(c, o == TUNER_DONE && !complaint, "undisturbed", complaint ? complaint : world_last_words(w));
    free(text);
    free(complaint);
    world_free(w);
}

/* One kill at each point of a tuner's life. */
static void each_point(struct campaign *c)
{
    long bad = 0, tried = 0;
    char *first = NULL;
    for (long k = 1; k <= c->points; k += stride(c, c->points), tried++) {
        struct world *w = fresh(c);
        struct fate f = {.kill_at = k};
        enum outcome o = world_tune(w, &f);
        char *why = o == TUNER_KILLED ? finish(c, w, 0, true) : dt_xstrdup("it was not killed");
        if (why && !bad++)
            first = dt_xasprintf("at point %ld: %s", k, why);
        free(why);
        world_free(w);
    }
    char *what = dt_xasprintf("killed at %ld of %ld points, %ld times not the same", tried, c->points, bad);
    say(c, bad == 0, what, first);
    free(what);
    free(first);
}

/* Kills at random points, one tuner after the other, until one gets to the end; the clock may jump in between. Then trials
 * that run side by side may seem to have run for long, or not at all, and others are tried. */
static void random_points(struct campaign *c, long kills, double jump)
{
    bool same = jump == 0 || c->setting == &settings[0];
    long bad = 0, studies = 0, done = 0;
    char *first = NULL;
    for (; done < kills; studies++) {
        struct world *w = fresh(c);
        double clock = 0;
        enum outcome o;
        do {
            struct fate f = {.kill_at = roll(c, c->points), .clock = clock};
            o = world_tune(w, &f);
            done += o == TUNER_KILLED;
            clock = jump * (2 * gsl_rng_uniform(c->rng) - 1);
        } while (o == TUNER_KILLED && gsl_rng_uniform(c->rng) < 0.9);
        char *why = o == TUNER_FAILED ? dt_xstrdup(world_last_words(w)) : finish(c, w, clock, same);
        if (why && !bad++)
            first = dt_xasprintf("study %ld: %s", studies + 1, why);
        free(why);
        world_free(w);
    }
    char *what = dt_xasprintf("killed %ld times in %ld studies%s, %ld of them not %s", done, studies,
                              jump > 0 ? " while the clock jumped" : "", bad, same ? "the same" : "whole");
    say(c, bad == 0, what, first);
    free(what);
    free(first);
}

/* A disk that is full from some write on, a quota that is used up, a file system that its server or a fault has made
 * read-only, a broken disk: an error, and then all goes on. */
static void full_disk(struct campaign *c)
{
    static const int reasons[] = {ENOSPC, EDQUOT, EROFS, EIO};
    long bad = 0;
    size_t n = 0;
    char *first = NULL;
    for (long k = 1; k <= c->writes; k += stride(c, c->writes)) {
        struct world *w = fresh(c);
        struct fate f = {.full_at = k, .full_by = reasons[n++ % (sizeof(reasons) / sizeof(*reasons))]};
        enum outcome o = world_tune(w, &f);
        bool told = o == TUNER_FAILED && strstr(world_last_words(w), strerror(f.full_by));
        char *why = told ? finish(c, w, 0, true) : dt_xasprintf("it said: %s", world_last_words(w));
        if (why && !bad++)
            first = dt_xasprintf("at write %ld: %s", k, why);
        free(why);
        world_free(w);
    }
    char *what = dt_xasprintf("a full disk, a quota, a read-only or a broken one at each of %ld writes, %ld times not the same", c->writes, bad);
    say(c, bad == 0, what, first);
    free(what);
    free(first);
}

/* The cluster as it is is needed for each fault anew, so each is tried in a process of its own, whose
 * exit status is 0 where all was well. */
static bool in_a_child(struct campaign *c, struct world *w, char *(*fault)(struct campaign *, struct world *))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *why = fault(c, w);
        if (why)
            printf("# %s\n", why);
        fflush(stdout);
        _exit(why != NULL);
    }
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A limit on the length of files, as ulimit -f sets: the journal may have so many bytes. At a quarter
 * of the points, as it is much like a full disk. */
static void long_file(struct campaign *c)
{
    long bad = 0, tried = 0;
    char *first = NULL;
    for (long k = 1; k < c->bytes; k += 4 * stride(c, c->bytes), tried++) {
        struct world *w = fresh(c);
        struct fate f = {.file_max = k};
        enum outcome o = world_tune(w, &f);
        bool told = o == TUNER_FAILED && strstr(world_last_words(w), "File too large");
        char *why = told ? finish(c, w, 0, true) : dt_xasprintf("it said: %s", world_last_words(w));
        if (why && !bad++)
            first = dt_xasprintf("at byte %ld: %s", k, why);
        free(why);
        world_free(w);
    }
    char *what = dt_xasprintf("a limit on its length at %ld of %ld bytes, %ld times not the same", tried, c->bytes, bad);
    say(c, bad == 0, what, first);
    free(what);
    free(first);
}

/* The clock is set while a tuner works, a day on or an hour back. */
static void set_clock(struct campaign *c)
{
    static const double jumps[] = {86400, -3600};
    bool same = c->setting == &settings[0];
    long bad = 0, tried = 0, requests = c->points / 3;
    char *first = NULL;
    for (long k = 1; k <= requests; k += 4 * stride(c, requests), tried++) {
        struct world *w = fresh(c);
        struct fate f = {.jump_at = k, .jump = jumps[tried % 2]};
        enum outcome o = world_tune(w, &f);
        char *complaint = world_complaint(w);
        bool good = o == TUNER_DONE && !complaint && (!same || strcmp(world_last_words(w), c->expected) == 0);
        if (!good && !bad++)
            first = dt_xasprintf("by %g s at request %ld: %s", f.jump, k, complaint ? complaint : world_last_words(w));
        free(complaint);
        world_free(w);
    }
    char *what = dt_xasprintf("its clock set by a day or an hour at %ld of about %ld requests, %ld times not %s", tried,
                              requests, bad, same ? "the same" : "whole");
    say(c, bad == 0, what, first);
    free(what);
    free(first);
}

/* ---- file systems ---- */

/* A file system of this process alone over the folder of the journal; false where none may be had. */
static bool mount_disk(const struct campaign *c, long bytes)
{
    char *size = dt_xasprintf("size=%ld", bytes);
    bool done = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                mount("none", c->dir, "tmpfs", 0, size) == 0;
    free(size);
    return done;
}

static bool remount(const struct campaign *c, unsigned long flags)
{
    return mount("none", c->dir, "tmpfs", MS_REMOUNT | flags, "size=64m") == 0;
}

/* A disk of so many bytes, and after that a large one. */
static char *small_disk(struct campaign *c, struct world *w)
{
    struct fate none = {0};
    if (!mount_disk(c, c->disk))
        return dt_xstrdup("it cannot be mounted");
    enum outcome o = world_tune(w, &none);
    if (o != TUNER_FAILED || !strstr(world_last_words(w), "No space left on device"))
        return dt_xasprintf("it said: %s", world_last_words(w));
    return remount(c, 0) ? finish(c, w, 0, true) : dt_xstrdup("it cannot be made larger");
}

/* A tuner dies, and the next finds that nothing can be written. */
static char *read_only(struct campaign *c, struct world *w)
{
    struct fate f = {.kill_at = c->points / 2}, none = {0};
    if (!mount_disk(c, 1 << 26))
        return dt_xstrdup("it cannot be mounted");
    enum outcome o = world_tune(w, &f);
    if (o != TUNER_KILLED || !remount(c, MS_RDONLY))
        return dt_xstrdup("it cannot be made read-only");
    o = world_tune(w, &none);
    if (o != TUNER_FAILED || !strstr(world_last_words(w), "Read-only file system"))
        return dt_xasprintf("it said: %s", world_last_words(w));
    return remount(c, 0) ? finish(c, w, 0, true) : dt_xstrdup("it stays read-only");
}

/* Whether one may be mounted. */
static char *only_mount(struct campaign *c, struct world *w)
{
    (void)w;
    return mount_disk(c, 4096) ? NULL : dt_xstrdup("no file system may be mounted here");
}

static void disks(struct campaign *c)
{
    const long page = sysconf(_SC_PAGESIZE);
    long bad = 0, tried = 0;
    struct world *w = fresh(c);
    if (!in_a_child(c, w, only_mount)) {
        printf("ok %d # SKIP file systems: none may be mounted\n", ++c->tests);
        world_free(w);
        return;
    }
    for (c->disk = page; c->disk < c->bytes; c->disk += page, tried++)
        bad += !in_a_child(c, w, small_disk);
    bad += !in_a_child(c, w, read_only);
    char *what = dt_xasprintf("full file systems of %ld sizes and a read-only one, %ld times not the same", tried, bad);
    say(c, bad == 0, what, NULL);
    free(what);
    world_free(w);
}

/* ---- damage ---- */

struct damaged {
    char *text; /* the journal as it was */
    size_t len, from; /* its last three records begin here */
};

static struct damaged read_journal(const struct campaign *c)
{
    struct damaged d = {.text = dt_read_file(c->journal, SIZE_MAX / 2, &d.len, NULL)};
    int records = 0;
    for (d.from = d.len; d.from > 0; d.from--)
        if (d.text[d.from - 1] == '\n' && d.from < d.len && ++records == 3)
            break;
    return d;
}

static void write_journal(const struct campaign *c, const char *text, size_t len)
{
    struct dt_error e = DT_ERROR_INIT;
    unlink(c->aside);
    if (dt_write_file(c->journal, text, len, 0600, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
}

static char *not_the_same(struct campaign *c, struct world *w)
{
    return finish(c, w, 0, true);
}

/* A tuner is killed at the first such point from `from` on at which the last record is of this kind; without a kind it is
 * not. */
static struct world *killed_after(struct campaign *c, long from, const char *kind)
{
    char *mark = dt_xasprintf("\"event\":\"%s\"", kind ? kind : "");
    for (struct fate f = {.kill_at = kind ? from : 0};; f.kill_at++) {
        struct world *w = fresh(c);
        world_tune(w, &f);
        struct damaged d = read_journal(c);
        const char *last = d.text + d.len - 1;
        while (last > d.text && last[-1] != '\n')
            last--;
        bool found = !kind || strstr(last, mark);
        free(d.text);
        if (found || f.kill_at > c->points) {
            free(mark);
            return w;
        }
        world_free(w);
    }
}

/* The journal is damaged at every byte of its last three records. */
static void damage(struct campaign *c, const char *kind)
{
    struct world *w = killed_after(c, c->points * 2 / 3, kind);
    struct damaged d = read_journal(c);
    size_t cut = 0, flipped = 0, step = (size_t)stride(c, (long)(d.len - d.from));
    for (size_t i = d.from; i < d.len; i += step) {
        write_journal(c, d.text, i);
        cut += !in_a_child(c, w, not_the_same);
    }
    for (size_t i = d.from; i < d.len; i += step) {
        char bit = (char)(1 << gsl_rng_uniform_int(c->rng, 8));
        d.text[i] ^= bit;
        write_journal(c, d.text, d.len);
        flipped += !in_a_child(c, w, not_the_same);
        d.text[i] ^= bit;
    }
    char *what = dt_xasprintf("its journal cut (%zu times not the same) and a bit of it flipped (%zu) at one in %zu of the "
                              "last %zu bytes, %s%s",
                              cut, flipped, step, d.len - d.from, kind ? "killed after a record of " : "finished",
                              kind ? kind : "");
    say(c, cut + flipped == 0, what, NULL);
    free(what);
    free(d.text);
    world_free(w);
}

/* An error that says so, and nothing is touched; or what was hit was not what a record says, and it comes to the same. */
static char *taken_for_whole(struct campaign *c, struct world *w)
{
    struct fate none = {0};
    struct damaged before = read_journal(c);
    enum outcome o = world_tune(w, &none);
    struct damaged after = read_journal(c);
    bool untouched = before.len == after.len && memcmp(before.text, after.text, after.len) == 0;
    free(before.text);
    free(after.text);
    if (o == TUNER_FAILED && untouched && strstr(world_last_words(w), ": the journal is damaged"))
        return NULL;
    return o == TUNER_DONE ? finish(c, w, 0, true) : dt_xasprintf("it said: %s", world_last_words(w));
}

/* What is not at the end is not guessed at, nor is what says what the study is. */
static void damage_before_that(struct campaign *c)
{
    struct world *w = fresh(c);
    struct fate f = {.kill_at = c->points - 1};
    world_tune(w, &f);
    struct damaged d = read_journal(c);
    size_t bad = 0, tried = 0, step = (size_t)stride(c, (long)d.from);
    for (size_t i = 1; i < d.from - 1; i += step, tried++) {
        char bit = (char)(1 << gsl_rng_uniform_int(c->rng, 8));
        d.text[i] ^= bit;
        write_journal(c, d.text, d.len);
        bad += !in_a_child(c, w, taken_for_whole);
        d.text[i] ^= bit;
    }
    write_journal(c, d.text, d.len);
    char *why = finish(c, w, 0, true);
    char *what = dt_xasprintf("%zu bits flipped before that, %zu not told of", tried, bad);
    say(c, bad == 0 && !why, what, why);
    free(what);
    free(why);
    free(d.text);
    world_free(w);
}

/* A second tuner finds the first at work. */
static void shared(struct campaign *c)
{
    struct world *w = fresh(c);
    struct fate f = {.kill_at = c->points / 2}, none = {0};
    world_tune(w, &f);
    int fd = open(c->journal, O_RDWR | O_CLOEXEC);
    flock(fd, LOCK_EX);
    struct damaged d = read_journal(c);
    bool refused = world_tune(w, &none) == TUNER_FAILED && strstr(world_last_words(w), "another tuner");
    struct damaged after = read_journal(c);
    bool untouched = d.len == after.len && memcmp(d.text, after.text, d.len) == 0;
    close(fd);
    free(d.text);
    free(after.text);
    char *why = finish(c, w, 0, true);
    say(c, refused && untouched && !why, "a second tuner is refused and changes nothing", why);
    free(why);
    world_free(w);
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR"), *top = getenv("srcdir");
    char *dir = dt_xasprintf("%s/dt-crash.XXXXXX", tmp ? tmp : P_tmpdir);
    char *table = dt_xasprintf("%s/tests/data/tables/trimtuner_tf_ps_multifidelity.csv", top ? top : ".");
    struct campaign c = {.table = table, .rng = gsl_rng_alloc(gsl_rng_mt19937)};
    c.kills = argc > 1 ? atol(argv[1]) : 20;
    if (c.kills < 1 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: crash [KILLS [SEED]]\n");
        return 2;
    }
    gsl_rng_set(c.rng, argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
    c.dir = dir;
    c.journal = dt_xasprintf("%s/journal.jsonl", dir);
    c.aside = dt_xasprintf("%s.damaged", c.journal);
    for (size_t i = 0; i < SETTINGS; i++) {
        c.setting = &settings[i];
        undisturbed(&c);
        each_point(&c);
        random_points(&c, c.kills, 0);
        random_points(&c, c.kills / 4 + 1, 1e5);
        full_disk(&c);
        long_file(&c);
        disks(&c);
        set_clock(&c);
        damage(&c, "started"); /* so that the last three are all that tells of the trial */
        damage(&c, "ended");
        damage(&c, NULL);
        damage_before_that(&c);
        shared(&c);
        free(c.expected);
    }
    printf("1..%d\n", c.tests);
    unlink(c.journal);
    unlink(c.aside);
    rmdir(dir);
    free(c.journal);
    free(c.aside);
    free(dir);
    free(table);
    gsl_rng_free(c.rng);
    return c.failed != 0;
}
