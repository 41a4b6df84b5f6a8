#include "space/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dt_fields dt_fields_of(struct json_object *o, char *place, struct dt_error *e)
{
    struct dt_fields f = {.o = o, .place = place, .e = e};
    if (!json_object_is_type(o, json_type_object))
        dt_fields_fail(&f, NULL, "an object is needed here");
    return f;
}

struct dt_fields dt_fields_element(const struct dt_fields *f, const char *key, size_t i)
{
    const char *place = f->place ? f->place : "";
    /* behind a file's name comes a colon, behind a key a dot */
    const char *joint = !*place ? "" : strchr(place, ':') ? "." : ": ";
    return dt_fields_of(dt_json_at(dt_json_get(f->o, key), i),
                        dt_xasprintf("%s%s%s[%zu]", place, joint, key, i), f->e);
}

int dt_fields_fail(struct dt_fields *f, const char *key, const char *fmt, ...)
{
    if (f->failed)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    char *message = dt_xvasprintf(fmt, ap);
    va_end(ap);
    const char *place = f->place ? f->place : "";
    const char *joint = !key || !*place ? "" : strchr(place, ':') ? "." : ": ";
    bool anywhere = *place || key;
    dt_fail(f->e, "%s%s%s%s%s", place, joint, key ? key : "", anywhere ? ": " : "", message);
    free(message);
    f->failed = true;
    return -1;
}

static void check_known(struct dt_fields *f)
{
    json_object_object_foreach(f->o, key, unused)
    {
        (void)unused;
        bool known = false;
        for (size_t i = 0; i < f->asked.n && !known; i++)
            known = strcmp(f->asked.v[i], key) == 0;
        if (known)
            continue;
        const char *near = dt_nearest(key, (const char *const *)f->asked.v, f->asked.n);
        char *list = near ? NULL : dt_strv_join(&f->asked, ", ");
        if (near)
            dt_fields_fail(f, key, "unknown key; did you mean \"%s\"?", near);
        else
            dt_fields_fail(f, key, "unknown key; known are: %s", list);
        free(list);
        return;
    }
}

int dt_fields_end(struct dt_fields *f)
{
    if (!f->failed)
        check_known(f);
    free(f->place);
    dt_strv_free(&f->asked);
    return f->failed ? -1 : 0;
}

/* Whether there is a value to read. */
static bool ask(struct dt_fields *f, const char *key, struct json_object **v)
{
    *v = NULL;
    if (f->failed)
        return false;
    dt_strv_add(&f->asked, key);
    return json_object_object_get_ex(f->o, key, v);
}

void dt_fields_u64(struct dt_fields *f, const char *key, uint64_t *out)
{
    struct json_object *v;
    if (!ask(f, key, &v))
        return;
    if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
        dt_fields_fail(f, key, "a whole number, 0 or more, is needed here");
    else
        *out = (uint64_t)json_object_get_int64(v);
}

void dt_fields_size(struct dt_fields *f, const char *key, size_t *out)
{
    uint64_t n = *out;
    dt_fields_u64(f, key, &n);
    *out = (size_t)n;
}

void dt_fields_bool(struct dt_fields *f, const char *key, bool *out)
{
    struct json_object *v;
    if (!ask(f, key, &v))
        return;
    if (!json_object_is_type(v, json_type_boolean))
        dt_fields_fail(f, key, "true or false is needed here");
    else
        *out = json_object_get_boolean(v);
}

void dt_fields_seconds(struct dt_fields *f, const char *key, double *out)
{
    struct json_object *v;
    if (!ask(f, key, &v))
        return;
    bool number = json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
    if (!v)
        *out = INFINITY;
    else if (!number || json_object_get_double(v) < 0)
        dt_fields_fail(f, key, "a number of seconds, or null for no limit, is needed here");
    else
        *out = json_object_get_double(v);
}

void dt_fields_text(struct dt_fields *f, const char *key, char **out)
{
    struct json_object *v;
    if (!ask(f, key, &v))
        return;
    if (v && !json_object_is_type(v, json_type_string)) {
        dt_fields_fail(f, key, "a string is needed here");
        return;
    }
    free(*out);
    *out = v ? dt_xstrdup(json_object_get_string(v)) : NULL;
}

size_t dt_fields_array(struct dt_fields *f, const char *key)
{
    struct json_object *v;
    if (!ask(f, key, &v))
        return 0;
    if (!json_object_is_type(v, json_type_array)) {
        dt_fields_fail(f, key, "an array is needed here");
        return 0;
    }
    return dt_json_count(v);
}
