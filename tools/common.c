#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

int fail_with(struct dt_error *e, int code)
{
    fprintf(stderr, "dt-tune: %s\n", e->text ? e->text : "unknown error");
    dt_error_clear(e);
    return code;
}

void print_warnings(const struct dt_submission *s)
{
    for (size_t i = 0; i < s->warnings.n; i++)
        fprintf(stderr, "dt-tune: warning: %s\n", s->warnings.v[i]);
}

struct dt_cluster *read_cluster(const char *path, struct dt_error *e)
{
    char *text = dt_read_text(path, 1024 * 1024, e);
    struct json_object *o = text ? dt_json_parse(text, path, e) : NULL;
    struct dt_cluster *c = o ? dt_cluster_from_json(o, e) : NULL;
    if (o && !c)
        dt_fail_at(e, "%s", path);
    json_object_put(o);
    free(text);
    return c;
}

char *sibling(const char *name, struct dt_error *e)
{
    char *dir = dt_self_dir(e), *path = dir ? dt_xasprintf("%s/%s", dir, name) : NULL;
    free(dir);
    return path;
}
