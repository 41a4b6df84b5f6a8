/* Our options in #SBATCH lines, ranges and domains among them, as a user's script has them: a SPEC, or refused in one line. */
#include "spec/submission.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const argv[] = {"sbatch", "--dt-tune", NULL}, *const env[] = {NULL};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_buf b = DT_BUF_INIT;
    dt_buf_add(&b, "#!/bin/sh\n#SBATCH ");
    dt_buf_addn(&b, (const char *)data, size);
    int fd;
    char *path = file_of((const uint8_t *)b.s, b.len, &fd);
    struct dt_submission *s = dt_submission_read(argv, env, fd, "/bin/false", &e);
    char *text = NULL, *name = NULL;
    struct json_object *json = s ? dt_spec_merge(s, &text, &name, &e) : NULL;
    struct dt_spec *spec = json ? dt_spec_parse(json, text, name, &e) : NULL;
    if (!spec)
        check_error(&e);
    dt_spec_free(spec);
    json_object_put(json);
    dt_submission_free(s);
    free(text);
    free(name);
    free(path);
    close(fd);
    dt_buf_free(&b);
    return 0;
}
