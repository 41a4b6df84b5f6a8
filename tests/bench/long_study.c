/* long_study: a study of very many trials, with its journal, and how long it takes to go on with it.
 *
 *     tests/bench/long_study [TRIALS [FOLDER]]        (10000, the folder of temporary files)
 *
 * The trials are rows of a made-up table on the replay backend, eight at a time, by random search; each record of the journal
 * is synced, as in earnest. Prints the seconds that the study took (and the CPU seconds of it), the journal's size, the
 * seconds that reading it again took, and the memory at its highest. Exit status 1 where that is more than 60 s, 2 s or
 * 256 MiB. */
#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PS 20
#define LR 20

static void die(const struct dt_error *e)
{
    fprintf(stderr, "%s\n", e->text);
    exit(2);
}

static char *make_table(const char *dir, long rows, struct dt_error *e)
{
    struct dt_buf b = DT_BUF_INIT;
    char *path = dt_xasprintf("%s/table.csv", dir);
    dt_buf_add(&b, "workers,ps,lr,time_s\n");
    for (long i = 0; i < rows; i++)
        dt_buf_addf(&b, "%ld,%ld,%ld,%ld\n", 1 + i / (PS * LR), i / LR % PS, i % LR, 10 + i * 7919 % 997);
    if (dt_write_file(path, b.s, b.len, 0600, e) < 0)
        die(e);
    dt_buf_free(&b);
    return path;
}

static struct dt_spec *make_spec(long trials, struct dt_error *e)
{
    char *text = dt_xasprintf(
        "{\"dt\": {\"workers\": {\"low\": 1, \"high\": %ld}, \"ps\": {\"low\": 0, \"high\": %d}}, "
        "\"hyperparameters\": {\"lr\": {\"type\": \"int\", \"low\": 0, \"high\": %d}}, "
        "\"replay\": {\"objective\": \"time_s\"}, \"search\": {\"algorithm\": \"random\", \"parallel\": 8, "
        "\"repeats\": 0, \"max_configs\": %ld, \"min_configs\": %ld}}",
        1 + trials / (PS * LR), PS - 1, LR - 1, trials, trials);
    struct json_object *json = dt_json_parse(text, "SPEC", e);
    struct dt_spec *s = json ? dt_spec_parse(json, text, "SPEC", e) : NULL;
    if (!s || dt_replay_adopt(s, e) < 0)
        die(e);
    json_object_put(json);
    free(text);
    return s;
}

static int take(void *s, struct json_object *record, struct dt_error *e)
{
    return dt_study_apply_record(s, record, e);
}

/* Seconds that it took; all of the study where it is not there yet. */
static double run(const struct dt_spec *spec, const struct dt_space *space, const char *table, const char *journal,
                  long trials)
{
    static const volatile int stop;
    struct dt_error e = DT_ERROR_INIT;
    double begin = dt_monotonic();
    struct dt_study *s = dt_study_new(spec, space, NULL, &e);
    struct dt_journal *j = s ? dt_journal_open(journal, take, s, &e) : NULL;
    struct dt_backend *b = j && !s->complete ? dt_backend_replay(spec, space, table, 0, 0, &e) : NULL;
    if (!j || (b && dt_study_run(s, b, j, NULL, NULL, &stop, &e) != 0))
        die(&e);
    if (!s->complete || s->n != (size_t)trials) {
        fprintf(stderr, "%zu trials instead of %ld\n", s->n, trials);
        exit(2);
    }
    dt_backend_free(b);
    dt_journal_close(j);
    dt_study_free(s);
    return dt_monotonic() - begin;
}

int main(int argc, char **argv)
{
    long trials = argc > 1 ? atol(argv[1]) : 10000;
    const char *tmp = getenv("TMPDIR");
    char *dir = dt_xasprintf("%s/dt-long.XXXXXX", argc > 2 ? argv[2] : tmp ? tmp : P_tmpdir);
    if (trials < 1 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: long_study [TRIALS [FOLDER]]\n");
        return 2;
    }
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv none = DT_STRV_INIT;
    char *table = make_table(dir, trials + PS * LR, &e), *journal = dt_xasprintf("%s/journal.jsonl", dir);
    struct dt_spec *spec = make_spec(trials, &e);
    size_t n;
    double *points = dt_replay_points(spec, spec->params, spec->nparams, table, &n, &e);
    struct dt_space *space = points ? dt_space_new(spec->params, spec->nparams, &none, NULL, 0, NULL, NULL, points,
                                                   n, &e)
                                    : NULL;
    if (!space)
        die(&e);
    double took = run(spec, space, table, journal, trials), cpu = (double)clock() / CLOCKS_PER_SEC;
    double again = run(spec, space, table, journal, trials);
    struct rusage use;
    struct stat st;
    getrusage(RUSAGE_SELF, &use);
    stat(journal, &st);
    printf("%ld trials in %.1f s (%.1f s of a CPU); a journal of %.1f MiB, read again in %.2f s; %.0f MiB of memory\n",
           trials, took, cpu, (double)st.st_size / 1048576, again, (double)use.ru_maxrss / 1024);
    unlink(table);
    unlink(journal);
    rmdir(dir);
    free(points);
    free(table);
    free(journal);
    free(dir);
    dt_space_free(space);
    dt_spec_free(spec);
    return took > 60 || again > 2 || use.ru_maxrss > 256 * 1024;
}
