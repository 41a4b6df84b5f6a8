/* How a trial's metrics are found: the section "metrics". */
#include "spec/spec_private.h"
#include "util/pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PATTERNS_MAX 64 /* no more metrics of a trial count anyway */

static int parse_pattern(struct dt_spec *s, const struct dt_place *p, const char *name,
                         struct json_object *pattern, struct dt_error *e)
{
    struct dt_error why = DT_ERROR_INIT;
    regex_t re;
    if (!*name || strcmp(name, "time") == 0 || strcmp(name, "dt") == 0)
        return dt_spec_fail(p, e, "no metric can have this name; choose another");
    for (const char *c = name; *c; c++)
        if (iscntrl((unsigned char)*c))
            return dt_spec_fail(p, e, "the name holds a control character; take it out");
    if (dt_spec_want(p, pattern, json_type_string, "a string", e) < 0)
        return -1;
    if (dt_pattern_compile(json_object_get_string(pattern), &re, &why) < 0) {
        dt_spec_fail(p, e, "%s", why.text);
        dt_error_clear(&why);
        return -1;
    }
    regfree(&re);
    if (strpbrk(json_object_get_string(pattern), "\r\n"))
        return dt_spec_fail(p, e,
                            "a pattern is looked for in each line alone; take the line end "
                            "out of it");
    dt_strv_add(&s->pattern_names, name);
    dt_strv_add(&s->patterns, json_object_get_string(pattern));
    return 0;
}

int dt_spec_parse_metrics(struct dt_spec *s, const struct dt_place *top, struct json_object *o,
                          struct dt_error *e)
{
    static const char *const keys[] = {"patterns", "step"};
    struct dt_place p = dt_spec_under(top, "metrics"), q = dt_spec_under(&p, "patterns");
    struct json_object *patterns = dt_json_get(o, "patterns");
    if (!o)
        return 0;
    if (dt_spec_check_keys(&p, o, keys, COUNT(keys), e) < 0 ||
        dt_spec_get_string(&p, o, "step", &s->step, e) < 0)
        return -1;
    if (!patterns)
        return 0;
    if (dt_spec_want(&q, patterns, json_type_object, "an object", e) < 0)
        return -1;
    if (json_object_object_length(patterns) > PATTERNS_MAX)
        return dt_spec_fail(&q, e, "%d patterns, at most %d are possible; leave some out",
                            json_object_object_length(patterns), PATTERNS_MAX);
    json_object_object_foreach(patterns, name, pattern)
    {
        struct dt_place at = dt_spec_under(&q, name);
        if (parse_pattern(s, &at, name, pattern, e) < 0)
            return -1;
    }
    return 0;
}

const char *dt_spec_pattern(const struct dt_spec *s, const char *metric)
{
    for (size_t i = 0; i < s->patterns.n; i++)
        if (strcmp(s->pattern_names.v[i], metric) == 0)
            return s->patterns.v[i];
    return NULL;
}
