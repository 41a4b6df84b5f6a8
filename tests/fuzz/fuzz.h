/* What the fuzz targets have in common. See tests/fuzz/run. */
#ifndef DT_FUZZ_H
#define DT_FUZZ_H

#include "space/space.h"
#include "spec/spec.h"
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv); /* job_submit has one */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool truth)
{
    if (!truth)
        abort();
}

/* NUL-terminated copy. Caller frees. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = dt_xcalloc(size + 1, 1);
    if (size)
        memcpy(text, data, size);
    return text;
}

/* What went wrong is said in one line. */
static inline void check_error(struct dt_error *e)
{
    require(e->text && e->text[0] && !strpbrk(e->text, "\n"));
    dt_error_clear(e);
}

/* A file with these bytes, by a path that lasts as long as *fd is open. */
static inline char *file_of(const uint8_t *data, size_t size, int *fd)
{
    *fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(*fd >= 0 && write(*fd, data, size) == (ssize_t)size && lseek(*fd, 0, SEEK_SET) == 0);
    return dt_xasprintf("/proc/self/fd/%d", *fd);
}

/* The SPEC that a target works with, and its space. */
static inline struct dt_spec *fixed_spec(const char *sections)
{
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(sections, "fuzz", &e);
    struct dt_spec *spec = json ? dt_spec_parse(json, sections, "fuzz", &e) : NULL;
    if (!spec) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    json_object_put(json);
    return spec;
}

static inline struct dt_space *space_of(const struct dt_spec *spec, struct dt_error *e)
{
    return dt_space_new(spec->params, spec->nparams, &spec->constraints, NULL, 0, NULL, NULL, NULL,
                        0, e);
}

#endif
