/* For programs that dt-tune starts: their parameters, and what they report. One file, no library
 * needed.
 *
 *     double lr = dt_param_double("lr", 0.1);
 *     for (long step = 1; step <= dt_param_long("steps", 1000); step++) {
 *         ...
 *         dt_report(2, "step", (double)step, "loss", loss);
 *     }
 *
 * Outside of a trial parameters have their defaults and nothing is reported, so the program is the
 * same. In a program of many tasks one of them reports. C99 or C++ on POSIX. */
#ifndef DT_TUNE_H
#define DT_TUNE_H

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The hyperparameter as text; `fallback` where it has no value. Names may be as long as 200
 * characters. */
static inline const char *dt_param_text(const char *name, const char *fallback)
{
    char variable[256] = "DT_PARAM_";
    size_t n = strlen(variable);
    if (strlen(name) > 200)
        return fallback;
    for (; *name; name++)
        variable[n++] = isalnum((unsigned char)*name) ? *name : '_';
    variable[n] = '\0';
    const char *value = getenv(variable);
    return value ? value : fallback;
}

/* As a number; one that is none ends the program, since it would go on with something that nobody
 * meant. */
static inline double dt_param_double(const char *name, double fallback)
{
    const char *text = dt_param_text(name, NULL);
    char *end = NULL;
    double x = text ? strtod(text, &end) : fallback;
    if (text && (end == text || *end)) {
        fprintf(stderr, "dt_tune.h: parameter %s is \"%s\", which is not a number\n", name, text);
        exit(2);
    }
    return x;
}

static inline long dt_param_long(const char *name, long fallback)
{
    double x = dt_param_double(name, (double)fallback);
    if (x != floor(x)) {
        fprintf(stderr, "dt_tune.h: parameter %s is %g, and should be a whole number\n", name, x);
        exit(2);
    }
    return (long)x;
}

/* Reports `n` metrics, each a name (letters, digits, _ and so on: no quotes) and a double; "step"
 * or "epoch" among them says how far the program is. 0; -1 where it could not be written, with
 * errno. */
static inline int dt_report(int n, ...)
{
    const char *path = getenv("DT_METRICS_FILE");
    char line[4096];
    int len, fd, rc;
    va_list ap;
    if (!path || !*path)
        return 0;
    len = snprintf(line, sizeof(line), "{\"time\": %ld", (long)time(NULL));
    va_start(ap, n);
    for (int i = 0; i < n && len < (int)sizeof(line); i++) {
        const char *name = va_arg(ap, const char *);
        double value = va_arg(ap, double);
        const char *bad = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        if (isfinite(value))
            len += snprintf(line + len, sizeof(line) - (size_t)len, ", \"%s\": %.17g", name, value);
        else
            len += snprintf(line + len, sizeof(line) - (size_t)len, ", \"%s\": %s", name, bad);
    }
    va_end(ap);
    if (len + 3 > (int)sizeof(line))
        return -1;
    len += snprintf(line + len, sizeof(line) - (size_t)len, "}\n");
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        return -1;
    rc = write(fd, line, (size_t)len) == len
             ? 0
             : -1; /* one write: lines of several tasks do not mix */
    close(fd);
    return rc;
}

#endif
