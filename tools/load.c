/* A study as its journal has it, for those who only look. */
#include "history/history.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int loaded_take(void *arg, struct json_object *record, struct dt_error *e)
{
    struct loaded *l = arg;
    struct dt_event ev;
    if (!l->setup) {
        struct json_object *doc = dt_json_get(record, "study");
        l->name = dt_xstrdup(dt_json_str(record, "name", "?"));
        l->setup = doc ? dt_setup_from_json(doc, "", e) : NULL;
        if (!l->setup)
            return doc ? -1 : dt_fail(e, "it does not begin with a study");
        l->study = dt_study_new(l->setup->spec, l->setup->space, dt_setup_first(l->setup), e);
        if (l->study)
            l->study->past = dt_past_from_json(dt_json_get(record, "past"), l->setup->space);
        l->chronicle = dt_chronicle_new();
        return l->study ? 0 : -1;
    }
    if (dt_event_from_json(record, &ev, e) < 0)
        return -1;
    int rc = dt_study_apply(l->study, &ev, e);
    if (rc == 0)
        dt_chronicle_apply(&l->chronicle, &ev);
    dt_event_free(&ev);
    return rc;
}

void loaded_free(struct loaded *l)
{
    dt_study_free(l->study);
    dt_setup_free(l->setup);
    dt_chronicle_free(&l->chronicle);
    free(l->name);
    *l = (struct loaded){0};
}

int load_study(const char *dir, struct loaded *l, struct dt_error *e)
{
    char *path = dt_xasprintf("%s/journal.jsonl", dir);
    *l = (struct loaded){0};
    int rc = dt_journal_read(path, loaded_take, l, e);
    if (rc == 0 && !l->study)
        rc = dt_fail(e, "%s: the study has not begun", path);
    if (rc < 0)
        loaded_free(l);
    free(path);
    return rc;
}

char *find_study(const char *command, const char *what, struct dt_error *e)
{
    struct stat st;
    char *dir = stat(what, &st) == 0 ? dt_xstrdup(what) : dt_xasprintf("dt-tune-%s", what);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = '\0';
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        dt_fail(e, "%s: there is neither a study's folder %s nor %s here", command, what, dir);
        free(dir);
        return NULL;
    }
    return dir;
}
