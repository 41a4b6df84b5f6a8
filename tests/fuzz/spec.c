/* SPEC documents: read, or refused in one line; the space of what is read is generated. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = text_of(data, size);
    struct json_object *json = dt_json_parse(text, "fuzz", &e);
    struct dt_spec *spec = json ? dt_spec_parse(json, text, "fuzz", &e) : NULL;
    struct dt_space *space = NULL;
    if (!spec)
        check_error(&e);
    else if (spec->nparams > 0 && !(space = space_of(spec, &e)))
        check_error(&e);
    dt_space_free(space);
    dt_spec_free(spec);
    json_object_put(json);
    free(text);
    return 0;
}
