#include "util/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A walk over JSON text that json-c has already accepted: it finds places, which json-c does not
 * keep. */
struct walk {
    const char *found;     /* where the looked-for key stands */
    const char *duplicate; /* the second of two equal keys */
};

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* p is on the opening quote; returns what follows the closing one. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

static bool key_is(const char *key, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(key, name, len) == 0;
}

static const char *walk_value(const char *p, const char *const *path, struct walk *w);

static const char *walk_object(const char *p, const char *const *path, struct walk *w)
{
    struct {
        const char *s;
        size_t len;
    } *keys = NULL;
    size_t n = 0;
    for (p = skip_space(p + 1); *p == '"';) {
        const char *key = p + 1, *end = skip_string(p);
        size_t len = (size_t)(end - key - 1);
        for (size_t i = 0; i < n && !w->duplicate; i++)
            if (keys[i].len == len && memcmp(keys[i].s, key, len) == 0)
                w->duplicate = key;
        keys = dt_xrealloc(keys, n + 1, sizeof(*keys));
        keys[n].s = key;
        keys[n++].len = len;
        bool on_path = path && *path && key_is(key, len, *path);
        if (on_path && !path[1] && !w->found)
            w->found = key;
        p = skip_space(end);
        if (*p == ':')
            p = walk_value(p + 1, on_path ? path + 1 : NULL, w);
        p = skip_space(p);
        if (*p == ',')
            p = skip_space(p + 1);
    }
    free(keys);
    return *p ? p + 1 : p;
}

static const char *walk_value(const char *p, const char *const *path, struct walk *w)
{
    p = skip_space(p);
    if (*p == '{')
        return walk_object(p, path, w);
    if (*p == '"')
        return skip_string(p);
    if (*p == '[') {
        for (p = skip_space(p + 1); *p && *p != ']';) {
            p = skip_space(walk_value(p, NULL, w));
            if (*p == ',')
                p = skip_space(p + 1);
        }
        return *p ? p + 1 : p;
    }
    return p + strcspn(p, ",]} \t\r\n");
}

static int line_of(const char *text, const char *p)
{
    int line = 1;
    for (; text < p; text++)
        line += *text == '\n';
    return line;
}

int dt_json_line(const char *text, const char *const *path)
{
    struct walk w = {0};
    walk_value(text, path, &w);
    return w.found ? line_of(text, w.found) : 0;
}

/* Where a text that json-c accepted has an apostrophe outside of strings: json-c takes 'x' for a
 * string. */
static const char *find_apostrophe(const char *p)
{
    for (p += strcspn(p, "\"'"); *p == '"'; p += strcspn(p, "\"'"))
        p = skip_string(p);
    return *p ? p : NULL;
}

/* "\u0000" in a string, where all that follows would be lost, or NULL. */
static const char *find_nul(const char *text)
{
    for (const char *p = strchr(text, '\\'); p && p[1]; p = strchr(p + 2, '\\'))
        if (dt_starts_with(p, "\\u0000"))
            return p;
    return NULL;
}

/* Where json-c 0.18 is strict it takes bytes from 0x80 on in a string for control characters
 * (json-c/json-c#875): it is shown an x in the place of each, which is as good in a string and as
 * bad elsewhere. NULL if there are none. */
static char *without_high_bytes(const char *text)
{
    char *plain = NULL;
    for (const char *p = text; *p; p++)
        if (*p & 0x80) {
            if (!plain)
                plain = dt_xstrdup(text);
            plain[p - text] = 'x';
        }
    return plain;
}

static struct json_object *read_strictly(struct json_tokener *tok, const char *text, size_t len)
{
    char *plain = without_high_bytes(text);
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    struct json_object *o = json_tokener_parse_ex(tok, plain ? plain : text, (int)len + 1);
    if (plain && o) {
        json_object_put(o);
        json_tokener_reset(tok);
        json_tokener_set_flags(tok, 0);
        o = json_tokener_parse_ex(tok, text, (int)len + 1);
    }
    free(plain);
    return o;
}

static const char *parse_error(enum json_tokener_error rc)
{
    switch (rc) {
    case json_tokener_continue:
        return "it ends too early";
    case json_tokener_error_parse_number: /* from json-c 0.17 on for numbers too large as well */
        return "a number is malformed or too large";
    default:
        return json_tokener_error_desc(rc);
    }
}

struct json_object *dt_json_parse(const char *text, const char *what, struct dt_error *e)
{
    struct json_tokener *tok = json_tokener_new();
    size_t len = strlen(text);
    if (!tok || len >= INT32_MAX) {
        dt_fail(e, "%s: too large to be read as JSON", what);
        json_tokener_free(tok);
        return NULL;
    }
    struct json_object *o = read_strictly(tok, text, len);
    enum json_tokener_error rc = json_tokener_get_error(tok);
    size_t end = json_tokener_get_parse_end(tok);
    if (rc == json_tokener_success && text[end < len ? end + strspn(text + end, " \t\r\n") : len]) {
        rc = json_tokener_error_parse_unexpected;
        json_object_put(o);
        o = NULL;
    }
    if (rc != json_tokener_success) {
        dt_fail(e, "%s:%d: not valid JSON: %s", what, line_of(text, text + (end < len ? end : len)),
                parse_error(rc));
    } else if (!o) {
        dt_fail(e, "%s: null is not enough, an object is needed", what);
    } else {
        struct walk w = {0};
        const char *apostrophe = find_apostrophe(text), *nul = find_nul(text);
        walk_value(text, NULL, &w);
        if (apostrophe)
            dt_fail(e, "%s:%d: not valid JSON: strings stand in double quotes", what,
                    line_of(text, apostrophe));
        else if (nul)
            dt_fail(e, "%s:%d: \\u0000 cannot stand in a string", what, line_of(text, nul));
        else if (w.duplicate)
            dt_fail(e, "%s:%d: the key \"%.*s\" stands twice in one object", what,
                    line_of(text, w.duplicate), (int)strcspn(w.duplicate, "\""), w.duplicate);
        if (apostrophe || nul || w.duplicate) {
            json_object_put(o);
            o = NULL;
        }
    }
    json_tokener_free(tok);
    return o;
}

char *dt_json_text(struct json_object *o)
{
    return dt_xstrdup(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

struct json_object *dt_json_number(double x)
{
    if (!isfinite(x))
        return NULL;
    if (x == floor(x) && fabs(x) < 9e15)
        return json_object_new_int64((int64_t)x);
    char *s = dt_format_double(x);
    struct json_object *o = json_object_new_double_s(x, s);
    free(s);
    return o;
}

struct json_object *dt_json_get(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    if (json_object_is_type(o, json_type_object))
        json_object_object_get_ex(o, key, &v);
    return v;
}

size_t dt_json_count(struct json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

struct json_object *dt_json_at(struct json_object *array, size_t i)
{
    return i < dt_json_count(array) ? json_object_array_get_idx(array, i) : NULL;
}

const char *dt_json_str(struct json_object *o, const char *key, const char *fallback)
{
    struct json_object *v = dt_json_get(o, key);
    return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : fallback;
}

double dt_json_num(struct json_object *o, const char *key, double fallback)
{
    struct json_object *v = dt_json_get(o, key);
    if (!json_object_is_type(v, json_type_double) && !json_object_is_type(v, json_type_int))
        return fallback;
    return json_object_get_double(v);
}

int64_t dt_json_int(struct json_object *o, const char *key, int64_t fallback)
{
    struct json_object *v = dt_json_get(o, key);
    return json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : fallback;
}

bool dt_json_bool(struct json_object *o, const char *key, bool fallback)
{
    struct json_object *v = dt_json_get(o, key);
    return json_object_is_type(v, json_type_boolean) ? json_object_get_boolean(v) : fallback;
}
