/* slurmctld runs job_submit concurrently (from 23.02 on): the target job_submit in several threads
 * at once, with random changes of the files of its corpus, built with -fsanitize=thread.
 *
 *     threads SECONDS FILE... */
#include "tests/fuzz/fuzz.h"

#include <pthread.h>
#include <time.h>

#define THREADS 4

struct seeds {
    char **text;
    size_t *len;
    size_t n;
    double until;
};
struct worker {
    pthread_t thread;
    const struct seeds *seeds;
    unsigned dice;
    unsigned long runs;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    while (dt_monotonic() < w->seeds->until) {
        size_t i = (size_t)rand_r(&w->dice) % w->seeds->n, len = w->seeds->len[i];
        uint8_t *data = dt_xcalloc(len + 1, 1);
        memcpy(data, w->seeds->text[i], len);
        for (int changes = rand_r(&w->dice) % 4; changes > 0 && len; changes--)
            data[(size_t)rand_r(&w->dice) % len] = (uint8_t)rand_r(&w->dice);
        LLVMFuzzerTestOneInput(data, len);
        free(data);
        w->runs++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    struct seeds s = {.n = argc > 2 ? (size_t)argc - 2 : 0};
    struct worker workers[THREADS] = {0};
    unsigned long runs = 0;
    if (!s.n)
        return 2;
    LLVMFuzzerInitialize(
        &argc, &argv); /* before there are threads, as slurmctld calls the plugin's init() */
    s.text = dt_xcalloc(s.n, sizeof(*s.text));
    s.len = dt_xcalloc(s.n, sizeof(*s.len));
    for (size_t i = 0; i < s.n; i++)
        require((s.text[i] = dt_read_file(argv[i + 2], 1 << 20, &s.len[i], &e)));
    s.until = dt_monotonic() + atof(argv[1]);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seeds = &s;
        workers[i].dice = i;
        require(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        runs += workers[i].runs;
    }
    for (size_t i = 0; i < s.n; i++)
        free(s.text[i]);
    free(s.text);
    free(s.len);
    printf("stat::number_of_executed_units: %lu\n", runs);
    return 0;
}
