/* handover: a checkpoint folder is copied whole, as it was at one moment, or not at all. */
#include "backend/slurm_private.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The time of the copy is the last thing set: then this folder goes away. */
static const char *goes;

int utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
    size_t n = strlen(path), tail = strlen("/to.tmp");
    if (goes && n > tail && strcmp(path + n - tail, "/to.tmp") == 0) {
        char *elsewhere = dt_xasprintf("%s.gone", goes);
        assert_int_equal(rename(goes, elsewhere), 0);
        free(elsewhere);
        goes = NULL;
    }
    return (int)syscall(SYS_utimensat, at, path, times, flags);
}

/* A folder of its own for each test, and in it "from" and "to". */
static char *dir, *from, *to;

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    dir = dt_xasprintf("%s/dt-test-handover.XXXXXX", tmp ? tmp : P_tmpdir);
    assert_non_null(mkdtemp(dir));
    from = dt_xasprintf("%s/from", dir);
    to = dt_xasprintf("%s/to", dir);
    return 0;
}

static int tear_down(void **state)
{
    char *const argv[] = {(char *)"rm", (char *)"-rf", dir, NULL};
    struct dt_proc_result r;
    (void)state;
    assert_int_equal(dt_proc_run(argv, NULL, 60, &r, NULL), 0);
    dt_proc_result_free(&r);
    free(dir);
    free(from);
    free(to);
    return 0;
}

static char *in(const char *folder, const char *name)
{
    return dt_xasprintf("%s/%s", folder, name);
}

static void put(const char *folder, const char *name, const char *text)
{
    char *path = in(folder, name), *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(dt_mkdirs(path, NULL), 0);
    *slash = '/';
    assert_int_equal(dt_write_file(path, text, strlen(text), 0640, NULL), 0);
    free(path);
}

static void expect(const char *folder, const char *name, const char *text)
{
    char *path = in(folder, name), *found = dt_read_file(path, 1 << 20, NULL, NULL);
    if (text)
        assert_string_equal(found ? found : "nothing", text);
    else
        assert_null(found);
    free(found);
    free(path);
}

static void files_folders_and_times_are_kept(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct stat a, b;
    (void)state;
    put(from, "model.pt", "weights");
    put(from, "step-10/shard-0", "zero");
    put(from, "step-10/deep/empty", "");
    char *source = in(from, "model.pt"), *copy = in(to, "model.pt");
    const struct timespec old[] = {{1000000, 0}, {1000000, 5000}};
    assert_int_equal(utimensat(AT_FDCWD, source, old, 0), 0);
    assert_int_equal(dt_mkdirs(to, NULL), 0); /* a run has made it, but never wrote */
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_DONE);
    expect(to, "model.pt", "weights");
    expect(to, "step-10/shard-0", "zero");
    expect(to, "step-10/deep/empty", "");
    assert_true(stat(source, &a) == 0 && stat(copy, &b) == 0);
    assert_true(a.st_mode == b.st_mode && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
                a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ino != b.st_ino);
    assert_int_equal(access(source, R_OK), 0);
    free(source);
    free(copy);
}

static void what_is_there_already_stays(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    put(from, "model.pt", "theirs");
    put(to, "model.pt", "own work");
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_DONE);
    expect(to, "model.pt", "own work");
}

static void no_file_is_no_checkpoint(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct stat st;
    (void)state;
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_NOTHING);
    assert_int_equal(dt_mkdirs(from, NULL), 0);
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_NOTHING);
    assert_true(stat(to, &st) < 0 && errno == ENOENT);
}

static void links_stay_links_and_lead_nowhere_else(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    char *secret = in(dir, "secret"), target[256];
    (void)state;
    put(dir, "secret", "not part of it");
    put(from, "step-10", "ten");
    char *inside = in(from, "step-10"), *own = in(to, "step-10");
    static const char *const names[] = {"latest", "outside", "absolute"};
    const char *const targets[] = {"step-10", secret, inside};
    const char *const expected[] = {"step-10", secret, own};
    for (size_t i = 0; i < 3; i++) {
        char *path = in(from, names[i]);
        assert_int_equal(symlink(targets[i], path), 0);
        free(path);
    }
    char *fifo = in(from, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0); /* is no data, and nobody waits for it */
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_DONE);
    for (size_t i = 0; i < 3; i++) {
        char *path = in(to, names[i]);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        assert_true(n > 0);
        target[n] = '\0';
        assert_string_equal(target, expected[i]);
        free(path);
    }
    expect(to, "latest", "ten");
    free(fifo);
    free(inside);
    free(own);
    free(secret);
}

static void an_error_leaves_nothing_behind(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct stat st;
    char *blocked = in(dir, "blocked"), *below = in(blocked, "to"), *rest = in(blocked, "to.tmp");
    (void)state;
    put(from, "model.pt", "weights");
    put(dir, "blocked", "a file where a folder should be");
    assert_int_equal(dt_handover(from, below, &e), DT_HANDOVER_FAILED);
    assert_non_null(strstr(e.text, "cannot be copied to"));
    assert_non_null(strstr(e.text, "Not a directory"));
    assert_true(stat(rest, &st) < 0);
    dt_error_clear(&e);
    free(blocked);
    free(below);
    free(rest);
}

static void what_an_earlier_try_left_is_cleared(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    char *rest = dt_xasprintf("%s.tmp", to);
    struct stat st;
    (void)state;
    put(rest, "half/of", "it");
    put(from, "model.pt", "weights");
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_DONE);
    expect(to, "half/of", NULL);
    expect(to, "model.pt", "weights");
    assert_true(stat(rest, &st) < 0);
    free(rest);
}

static void a_folder_that_is_gone_once_it_was_copied_is_none(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct stat st;
    (void)state;
    put(from, "model.pt", "weights");
    goes = from;
    assert_int_equal(dt_handover(from, to, &e), DT_HANDOVER_NOTHING);
    assert_null(goes);
    assert_null(e.text);
    assert_true(stat(to, &st) < 0);
}

/* A program that puts two files of the same number in place, one after the other, without end. */
struct writer {
    atomic_bool stop;
    bool restless; /* without a pause between */
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; !w->stop; i++) {
        char *text = dt_xasprintf("%d", i);
        put(from, "a", text);
        put(from, "b", text);
        free(text);
        if (!w->restless)
            usleep(20000);
    }
    return NULL;
}

static void a_folder_that_changes_is_copied_between_changes(void **state)
{
    (void)state;
    for (int restless = 0; restless < 2; restless++) {
        struct writer w = {.restless = restless};
        pthread_t thread;
        put(from, "a", "-1");
        put(from, "b", "-1");
        assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
        for (int i = 0; i < 5; i++) {
            struct dt_error e = DT_ERROR_INIT;
            char *name = dt_xasprintf("to-%d-%d", restless, i), *target = in(dir, name);
            enum dt_handover done = dt_handover(from, target, &e);
            assert_true(done == DT_HANDOVER_DONE || done == DT_HANDOVER_BUSY);
            if (done == DT_HANDOVER_DONE) {
                char *a = in(target, "a"), *b = in(target, "b");
                char *first = dt_read_file(a, 100, NULL, NULL),
                     *second = dt_read_file(b, 100, NULL, NULL);
                long gap = strtol(first, NULL, 10) - strtol(second, NULL, 10);
                assert_true(gap == 0 || gap == 1); /* as it was at one moment */
                free(a);
                free(b);
                free(first);
                free(second);
            } else {
                assert_int_not_equal(access(target, F_OK), 0);
            }
            free(name);
            free(target);
        }
        w.stop = true;
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_folders_and_times_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_there_already_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_file_is_no_checkpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_stay_links_and_lead_nowhere_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_an_earlier_try_left_is_cleared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_is_gone_once_it_was_copied_is_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_changes_is_copied_between_changes, set_up,
                                        tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
