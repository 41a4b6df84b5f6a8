#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: dt-tune metric NAME=NUMBER...\n"
    "Reports metrics of the running trial, e.g. dt-tune metric step=100 loss=0.31\n"
    "Outside a trial (DT_METRICS_FILE is not set) it does nothing, so a script may call it "
    "always.\n";

int cmd_metric(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    const char *path = getenv("DT_METRICS_FILE");
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    struct json_object *o = json_object_new_object();
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        double x;
        if (!equals || equals == argv[i] || dt_parse_double(equals + 1, &x) < 0) {
            dt_fail(&e, "metric: \"%s\": write it like loss=0.31, with a finite number", argv[i]);
            json_object_put(o);
            return fail_with(&e, EXIT_USAGE);
        }
        char *name = dt_xstrndup(argv[i], (size_t)(equals - argv[i]));
        json_object_object_add(o, name, dt_json_number(x));
        free(name);
    }
    json_object_object_add(o, "time", json_object_new_double(dt_now()));
    char *text = dt_json_text(o), *line = dt_xasprintf("%s\n", text);
    json_object_put(o);
    int rc = EXIT_DONE;
    if (path) { /* one write: lines of several tasks do not mix */
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0 || write(fd, line, strlen(line)) < 0) {
            dt_fail(&e, "metric: %s: %s", path, strerror(errno));
            rc = fail_with(&e, EXIT_WORK_FAILED);
        }
        if (fd >= 0)
            close(fd);
    }
    free(text);
    free(line);
    return rc;
}
