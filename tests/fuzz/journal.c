/* Journals: replayed, or refused in one line; what was replayed can be decided on and reported. */
#include "report/report.h"
#include "tests/fuzz/fuzz.h"
#include "tuner/tuner.h"

static const char sections[] =
    "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 2}, \"workers\": {\"low\": 1, \"high\": 4}}, "
    "\"hyperparameters\": {\"lr\": {\"low\": 0.01, \"high\": 1, \"log\": true}}, "
    "\"objective\": {\"metric\": \"loss\", \"goal\": \"minimize\"}, \"search\": {\"algorithm\": \"random\", \"parallel\": 2}}";

static int take(void *s, struct json_object *record, struct dt_error *e)
{
    return dt_study_apply_record(s, record, e);
}

static void use(struct dt_study *s)
{
    static FILE *sink;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_action a;
    if (!sink)
        sink = fopen("/dev/null", "we");
    if (dt_study_decide(s, s->t_last, &a, &e) == 0)
        dt_action_free(&a);
    else
        check_error(&e);
    dt_report_trials(sink, s);
    dt_report_final(sink, s, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_spec *spec;
    static struct dt_space *space;
    struct dt_error e = DT_ERROR_INIT;
    if (!spec) {
        spec = fixed_spec(sections);
        space = space_of(spec, &e);
        require(space);
    }
    int fd;
    char *path = file_of(data, size, &fd);
    struct dt_study *s = dt_study_new(spec, space, NULL, &e);
    require(s);
    if (dt_journal_read(path, take, s, &e) < 0)
        check_error(&e);
    else
        use(s);
    dt_study_free(s);
    free(path);
    close(fd);
    return 0;
}
