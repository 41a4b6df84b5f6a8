/* What the readers of SPEC's sections share. */
#ifndef DT_SPEC_PRIVATE_H
#define DT_SPEC_PRIVATE_H

#include "spec/spec.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Where an error is: the document and a path of keys in it. */
struct dt_place {
    const char *text, *name; /* text NULL: no line numbers; name NULL: the caller names the place */
    const char *path[5];     /* NULL-terminated */
};
struct dt_place dt_spec_under(const struct dt_place *p, const char *key);
/* "SPEC.json:12", or nothing where the place has no name. */
void dt_spec_place_text(const struct dt_place *p, struct dt_buf *b);
/* "SPEC.json:12: dt.ps", or NULL where the place has no name. Caller frees. */
char *dt_spec_place_path(const struct dt_place *p);
/* "SPEC.json:12: dt.ps: MESSAGE"; returns -1. */
int dt_spec_fail(const struct dt_place *p, struct dt_error *e, const char *fmt, ...)
    DT_PRINTF(3, 4);

/* "a number", "an object": what it is. */
const char *dt_spec_type_word(struct json_object *o);
/* The type must be this one, which `word` names. An integer is a double too. */
int dt_spec_want(const struct dt_place *p, struct json_object *o, json_type type, const char *word,
                 struct dt_error *e);
/* Every key of the object must be one of the names. */
int dt_spec_check_keys(const struct dt_place *p, struct json_object *o, const char *const *names,
                       size_t n, struct dt_error *e);
/* The value of a key, if it is there; what was in *out is replaced. */
int dt_spec_get_string(const struct dt_place *p, struct json_object *o, const char *key, char **out,
                       struct dt_error *e);
int dt_spec_get_size(const struct dt_place *p, struct json_object *o, const char *key, size_t min,
                     size_t *out, struct dt_error *e);
/* `word`: what is needed, for messages. */
int dt_spec_get_number(const struct dt_place *p, struct json_object *o, const char *key,
                       const char *word, double *x, struct dt_error *e);
int dt_spec_get_strings(const struct dt_place *p, struct json_object *o, const char *key,
                        struct dt_strv *out, struct dt_error *e);

/* Adds the parameters of a section, hyperparameters or not, to s (domain.c). */
int dt_spec_parse_params(struct dt_spec *s, const struct dt_place *top, struct json_object *section,
                         const char *section_name, bool hyper, struct dt_error *e);

/* The sections "reallocate" and "checkpoint" (reallocate.c). */
int dt_spec_parse_reallocate(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                             struct dt_error *e);
int dt_spec_parse_checkpoint(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                             struct dt_error *e);

/* The section "metrics" (metrics.c). */
int dt_spec_parse_metrics(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                          struct dt_error *e);

#endif
