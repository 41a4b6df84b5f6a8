/* Lines in a run's metrics file: whatever they are, a look takes the bounded time, and gives events that a study can take. */
#include "backend/slurm_private.h"
#include "tests/fuzz/fuzz.h"

static const char sections[] =
    "{\"dt\": {\"workers\": [1, 2]}, \"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_spec *spec;
    if (!spec)
        spec = fixed_spec(sections);
    int fd;
    char *path = file_of(data, size, &fd);
    struct dt_trial t = {.id = 1, .run = 1, .state = DT_TRIAL_STARTED};
    struct dt_feed *f = dt_feed_new(path, &t);
    struct dt_event *events = NULL;
    size_t n = 0;
    dt_feed_read(f, spec, &t, true, &events, &n);
    for (size_t i = 0; i < n; i++) {
        require(events[i].kind == DT_EVENT_METRIC && events[i].text);
        dt_event_free(&events[i]);
    }
    free(events);
    free(dt_feed_note(f));
    dt_feed_free(f);
    free(path);
    close(fd);
    return 0;
}
