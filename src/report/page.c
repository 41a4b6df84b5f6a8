/* One HTML file that needs nothing beside it. What a study brings along, its names above all, is
 * data: JSON in which no
 * '<' is left, so that nothing in it ends the element that holds it or begins another. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void add_json(struct dt_buf *b, struct json_object *o)
{
    char *raw = dt_json_text(o), *text = dt_clean_text(raw, strlen(raw));
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "<");
        dt_buf_addn(b, s, n);
        s += n;
        if (*s) {
            dt_buf_add(b, "\\u003c");
            s++;
        }
    }
    free(text);
    free(raw);
}

static void add_words(struct dt_buf *b, const char *text)
{
    char *clean = dt_clean_text(text, strlen(text));
    for (const char *s = clean; *s; s++)
        switch (*s) {
        case '<':
            dt_buf_add(b, "&lt;");
            break;
        case '&':
            dt_buf_add(b, "&amp;");
            break;
        default:
            dt_buf_addn(b, s, 1);
        }
    free(clean);
}

/* Our own files: nothing is changed in them, so they must be fit to stand in an element. */
static int add_code(struct dt_buf *b, const char *code, const char *element, struct dt_error *e)
{
    char *end = dt_xasprintf("</%s", element);
    bool ends = strcasestr(code, end) || strstr(code, "<!--");
    free(end);
    if (ends)
        return dt_fail(e,
                       "the page's %s holds \"</%s\" or \"<!--\"; install dt-tune's own files anew",
                       element, element);
    dt_buf_add(b, code);
    return 0;
}

static int fill(struct dt_buf *b, const struct dt_page *p, const char *name, struct dt_error *e)
{
    if (strcmp(name, "TITLE") == 0)
        add_words(b, p->title);
    else if (strcmp(name, "REPORT") == 0)
        add_json(b, p->report);
    else if (strcmp(name, "VIEWS") == 0)
        add_json(b, p->views);
    else if (strcmp(name, "STYLE") == 0)
        return add_code(b, p->style, "style", e);
    else if (strcmp(name, "LIBRARY") == 0)
        return add_code(b, p->library, "script", e);
    else
        return add_code(b, p->script, "script", e);
    return 0;
}

char *dt_report_page(const struct dt_page *p, struct dt_error *e)
{
    static const char *const names[] = {"TITLE", "STYLE", "LIBRARY", "REPORT", "VIEWS", "SCRIPT"};
    struct dt_buf b = DT_BUF_INIT;
    const char *s = p->frame;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *mark = dt_xasprintf("@%s@", names[i]);
        const char *at = strstr(s, mark);
        int rc =
            at ? 0
               : dt_fail(e, "the page's frame has no %s; install dt-tune's own files anew", mark);
        if (at) {
            dt_buf_addn(&b, s, (size_t)(at - s));
            rc = fill(&b, p, names[i], e);
            s = at + strlen(mark);
        }
        free(mark);
        if (rc < 0) {
            dt_buf_free(&b);
            return NULL;
        }
    }
    dt_buf_add(&b, s);
    return dt_buf_take(&b);
}
