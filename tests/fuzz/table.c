/* Measured tables: points of a space, or refused in one line. */
#include "backend/backend.h"
#include "tests/fuzz/fuzz.h"

static const char sections[] =
    "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 4}, \"workers\": {\"low\": 1, \"high\": 16}}, "
    "\"hyperparameters\": {\"opt\": [\"sgd\", \"adam\"]}, \"replay\": {\"where\": {\"m\": \"a\"}, "
    "\"objective\": \"speed\", \"goal\": \"maximize\", \"duration\": \"t\", \"status\": \"status\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_spec *spec;
    struct dt_error e = DT_ERROR_INIT;
    if (!spec) {
        spec = fixed_spec(sections);
        require(dt_replay_adopt(spec, &e) == 0);
    }
    int fd;
    char *path = file_of(data, size, &fd);
    size_t n;
    double *points = dt_replay_points(spec, spec->params, spec->nparams, path, &n, &e);
    if (!points)
        check_error(&e);
    free(points);
    free(path);
    close(fd);
    return 0;
}
