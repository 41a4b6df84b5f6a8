/* The report as a page: what it is made of lies with dt-tune's data. */
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST ((size_t)8 << 20)

/* Beside the program as it was installed, wherever that is now, or as it was built; else where it
 * was meant to be. */
char *data_file(const char *name)
{
    static const char *const beside[] = {"../share/dt-tune", "share/dt-tune"};
    char *self = dt_self_dir(NULL);
    for (size_t i = 0; self && i < sizeof(beside) / sizeof(*beside); i++) {
        char *path = dt_xasprintf("%s/%s/%s", self, beside[i], name);
        if (access(path, R_OK) == 0) {
            free(self);
            return path;
        }
        free(path);
    }
    free(self);
    return dt_xasprintf("%s/%s", DT_DATA, name);
}

static char *read_data(const char *name, struct dt_error *e)
{
    char *path = data_file(name), *text = dt_read_text(path, LARGEST, e);
    if (!text)
        dt_fail_at(e,
                   "the page needs a file that comes with dt-tune (install its data, or make the "
                   "report on a host that has it)");
    free(path);
    return text;
}

char *report_page(const char *name, const char *job, const struct dt_study *s,
                  const struct dt_chronicle *c, struct dt_error *e)
{
    static const char *const names[] = {"report.html", "report.css", "echarts.min.js", "report.js"};
    char *parts[4] = {0}, *page = NULL;
    bool all = true;
    for (size_t i = 0; i < 4 && all; i++)
        all = (parts[i] = read_data(names[i], e)) != NULL;
    if (all) {
        struct dt_page p = {.frame = parts[0],
                            .style = parts[1],
                            .library = parts[2],
                            .script = parts[3],
                            .title = name,
                            .report = dt_report_json(s, name),
                            .views = dt_report_views(job, s, c)};
        page = dt_report_page(&p, e);
        json_object_put(p.report);
        json_object_put(p.views);
    }
    for (size_t i = 0; i < 4; i++)
        free(parts[i]);
    return page;
}

int write_page(const char *dir, struct dt_error *e)
{
    struct loaded l;
    if (load_study(dir, &l, e) < 0)
        return -1;
    char *page = report_page(l.name, l.setup->job.name, l.study, &l.chronicle, e);
    char *path = dt_xasprintf("%s/report.html", dir);
    int rc = page ? dt_write_file(path, page, strlen(page), 0666, e) : -1;
    free(page);
    free(path);
    loaded_free(&l);
    return rc;
}
