/* Reading JSON with types checked and places named. */
#include "spec/spec_private.h"

#include <stdlib.h>
#include <string.h>

struct dt_place dt_spec_under(const struct dt_place *p, const char *key)
{
    struct dt_place q = *p;
    size_t n = 0;
    while (q.path[n])
        n++;
    if (n + 1 < COUNT(q.path))
        q.path[n] = key;
    return q;
}

void dt_spec_place_text(const struct dt_place *p, struct dt_buf *b)
{
    int line = p->text && p->path[0] ? dt_json_line(p->text, p->path) : 0;
    if (p->name)
        dt_buf_add(b, p->name);
    if (p->name && line)
        dt_buf_addf(b, ":%d", line);
}

char *dt_spec_place_path(const struct dt_place *p)
{
    struct dt_buf b = DT_BUF_INIT;
    if (!p->name)
        return NULL;
    dt_spec_place_text(p, &b);
    for (size_t i = 0; p->path[i]; i++)
        dt_buf_addf(&b, "%s%s", i ? "." : ": ", p->path[i]);
    return dt_buf_take(&b);
}

int dt_spec_fail(const struct dt_place *p, struct dt_error *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *message = dt_xvasprintf(fmt, ap), *place = dt_spec_place_path(p);
    va_end(ap);
    dt_fail(e, "%s%s%s", place ? place : "", place ? ": " : "", message);
    free(message);
    free(place);
    return -1;
}

const char *dt_spec_type_word(struct json_object *o)
{
    switch (json_object_get_type(o)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "a boolean";
    case json_type_double:
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    }
    return "something else";
}

int dt_spec_want(const struct dt_place *p, struct json_object *o, json_type type, const char *word,
                 struct dt_error *e)
{
    if (json_object_is_type(o, type) ||
        (type == json_type_double && json_object_is_type(o, json_type_int)))
        return 0;
    return dt_spec_fail(p, e, "%s is needed here, this is %s", word, dt_spec_type_word(o));
}

int dt_spec_check_keys(const struct dt_place *p, struct json_object *o, const char *const *names,
                       size_t n, struct dt_error *e)
{
    if (dt_spec_want(p, o, json_type_object, "an object", e) < 0)
        return -1;
    json_object_object_foreach(o, key, value)
    {
        bool known = false;
        struct dt_place q = dt_spec_under(p, key);
        for (size_t i = 0; i < n; i++)
            known |= strcmp(key, names[i]) == 0;
        if (known && !value)
            return dt_spec_fail(
                &q, e, "a value is needed here, this is null; without the key the default holds");
        if (known)
            continue;
        const char *near = dt_nearest(key, names, n);
        if (near)
            return dt_spec_fail(&q, e, "unknown key; did you mean \"%s\"?", near);
        struct dt_strv all = DT_STRV_INIT;
        for (size_t i = 0; i < n; i++)
            dt_strv_add(&all, names[i]);
        char *list = dt_strv_join(&all, ", ");
        dt_spec_fail(&q, e, "unknown key; known are: %s", list);
        free(list);
        dt_strv_free(&all);
        return -1;
    }
    return 0;
}

int dt_spec_get_string(const struct dt_place *p, struct json_object *o, const char *key, char **out,
                       struct dt_error *e)
{
    struct json_object *v;
    struct dt_place q = dt_spec_under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    if (dt_spec_want(&q, v, json_type_string, "a string", e) < 0)
        return -1;
    if (!*json_object_get_string(v))
        return dt_spec_fail(&q, e, "an empty value; write one or leave it out");
    free(*out);
    *out = dt_xstrdup(json_object_get_string(v));
    return 0;
}

int dt_spec_get_size(const struct dt_place *p, struct json_object *o, const char *key, size_t min,
                     size_t *out, struct dt_error *e)
{
    struct json_object *v;
    struct dt_place q = dt_spec_under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    int64_t x = json_object_get_int64(v);
    if (!json_object_is_type(v, json_type_int) || x < (int64_t)min || x > 1000000000)
        return dt_spec_fail(&q, e, "a whole number between %zu and 1000000000 is needed here", min);
    *out = (size_t)x;
    return 0;
}

int dt_spec_get_strings(const struct dt_place *p, struct json_object *o, const char *key,
                        struct dt_strv *out, struct dt_error *e)
{
    struct json_object *v;
    struct dt_place q = dt_spec_under(p, key);
    if (!json_object_object_get_ex(o, key, &v))
        return 0;
    if (dt_spec_want(&q, v, json_type_array, "an array of strings", e) < 0)
        return -1;
    for (size_t i = 0; i < dt_json_count(v); i++) {
        struct json_object *item = dt_json_at(v, i);
        if (dt_spec_want(&q, item, json_type_string, "an array of strings", e) < 0)
            return -1;
        dt_strv_add(out, json_object_get_string(item));
    }
    return 0;
}
