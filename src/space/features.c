/* Features of nodes, and constraints over them. */
#include "space/cluster.h"

#include <stdlib.h>
#include <string.h>

/* "&" for names joined by it, also for one alone; "|"; NULL where it is not understood. */
static const char *joined_by(const char *constraint)
{
    bool either = strchr(constraint, '|') != NULL;
    if (strpbrk(constraint, either ? "&,[]*()!" : "[]*()!"))
        return NULL;
    return either ? "|" : "&,";
}

static bool is_in(const struct dt_strv *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return true;
    return false;
}

bool dt_features_allow(const char *features, const char *constraint)
{
    struct dt_strv want = DT_STRV_INIT, have = DT_STRV_INIT;
    const char *by = features && constraint ? joined_by(constraint) : NULL;
    size_t found = 0;
    if (!by)
        return true;
    dt_strv_split(&want, constraint, by);
    dt_strv_split(&have, features, ",");
    for (size_t i = 0; i < want.n; i++)
        found += is_in(&have, want.v[i]);
    bool ok = *by == '|' ? found > 0 : found == want.n;
    dt_strv_free(&want);
    dt_strv_free(&have);
    return ok;
}

char *dt_features_missing(const char *features, const char *constraint)
{
    struct dt_strv want = DT_STRV_INIT, have = DT_STRV_INIT;
    const char *by = features && constraint ? joined_by(constraint) : NULL;
    char *missing = NULL;
    if (!by)
        return NULL;
    dt_strv_split(&want, constraint, by);
    dt_strv_split(&have, features, ",");
    for (size_t i = 0; i < want.n && !missing; i++)
        if (!is_in(&have, want.v[i]))
            missing = dt_xstrdup(want.v[i]);
    dt_strv_free(&want);
    dt_strv_free(&have);
    return missing;
}

char *dt_features_join(const char *a, const char *b)
{
    if (!a && !b)
        return NULL;
    if (!a || !b || strcmp(a, b) == 0)
        return dt_xstrdup(a ? a : b);
    const char *by_a = joined_by(a), *by_b = joined_by(b);
    return by_a && by_b && *by_a == '&' && *by_b == '&' ? dt_xasprintf("%s&%s", a, b) : NULL;
}
