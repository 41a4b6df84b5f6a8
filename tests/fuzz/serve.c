/* Requests of another program to dt-tune serve: each is answered or becomes an event that the study takes. */
#include "serve/serve.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>

static const char sections[] =
    "{\"dt\": {\"workers\": [1, 2]}, \"hyperparameters\": {\"lr\": {\"low\": 0.01, \"high\": 1}, "
    "\"opt\": [\"sgd\", \"adam\"]}, \"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}}";

static void take_all(struct dt_serve *v, struct dt_study *s)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev;
    while (dt_serve_request(v, s, &ev)) {
        ev.t = 1;
        if (dt_study_apply(s, &ev, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            abort();
        }
        dt_serve_event(v, s, &ev);
        dt_event_free(&ev);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_spec *spec;
    static struct dt_space *space;
    static const volatile int stop = 1;
    static int sink = -1;
    struct dt_error e = DT_ERROR_INIT;
    if (!spec) {
        spec = fixed_spec(sections);
        space = space_of(spec, &e);
        sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
        require(space && sink >= 0);
    }
    int fd;
    char *path = file_of(data, size, &fd);
    struct dt_study *s = dt_study_new(spec, space, NULL, &e);
    struct dt_serve *v = dt_serve_new(fd, sink, -1, &e);
    require(s && v);
    s->external = true;
    for (int i = 0; i < 1000 && !s->no_more; i++)
        take_all(v, s);
    dt_serve_finish(v, s, NULL);
    dt_serve_free(v, 0, &stop);
    dt_study_free(s);
    free(path);
    close(fd);
    return 0;
}
