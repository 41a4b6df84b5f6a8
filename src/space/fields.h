/* fields: reads the members of a JSON object one after the other. The first fault stops the rest
 * and is told with its place, "cluster.json: kinds[3].mem: ..."; a member that nobody asked for is
 * a fault too. */
#ifndef DT_FIELDS_H
#define DT_FIELDS_H

#include "util/util.h"

struct dt_fields {
    struct json_object *o;
    char *place; /* "cluster.json: kinds[3]", or NULL: the top of something without a name */
    struct dt_strv asked;
    struct dt_error *e;
    bool failed;
};

/* `place` is taken over. What is no object is a fault. */
struct dt_fields dt_fields_of(struct json_object *o, char *place, struct dt_error *e);
/* Those of element i of the array `key`, whose place is made of that of `f`. */
struct dt_fields dt_fields_element(const struct dt_fields *f, const char *key, size_t i);
/* -1 after a fault; frees what the reader holds. */
int dt_fields_end(struct dt_fields *f);
/* Notes a fault at `key`; returns -1. */
int dt_fields_fail(struct dt_fields *f, const char *key, const char *fmt, ...) DT_PRINTF(3, 4);

/* Each leaves *out as it is where the member is absent. */
void dt_fields_size(struct dt_fields *f, const char *key, size_t *out);
void dt_fields_u64(struct dt_fields *f, const char *key, uint64_t *out);
void dt_fields_bool(struct dt_fields *f, const char *key, bool *out);
void dt_fields_seconds(struct dt_fields *f, const char *key, double *out); /* null: no limit */
void dt_fields_text(struct dt_fields *f, const char *key,
                    char **out); /* the old one is freed; null: NULL */
/* How many elements the array has; 0 where it is absent. */
size_t dt_fields_array(struct dt_fields *f, const char *key);

#endif
