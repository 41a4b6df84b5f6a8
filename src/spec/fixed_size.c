/* A launcher's number of nodes that stands in the script as a number: right for the job as it was
 * submitted, and in a trial with other workers a rendezvous for which somebody is always missing.
 * Public tutorials have it so. */
#include "spec/submission.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *option, *cure;
} sizes[] = {
    {"--nnodes", "leave it out (torchrun has it from PET_NNODES), or write $SLURM_NTASKS"},
    {"--num_machines", "write $SLURM_NTASKS"},
    {"--world_size", "write $WORLD_SIZE"},
    {"--world-size", "write $WORLD_SIZE"},
};

static bool ends_word(char c)
{
    return c == '\0' || c == '\\' || isspace((unsigned char)c);
}

/* The digits of "OPTION N" or "OPTION=N" in the line, or NULL; a range (1:4) is none. */
static const char *number_of(const char *line, const char *option)
{
    size_t n = strlen(option);
    for (const char *p = line; (p = strstr(p, option)); p += n) {
        const char *value = p + n + (p[n] == '=' ? 1 : strspn(p + n, " \t"));
        size_t digits = strspn(value, "0123456789");
        if ((p == line || isspace((unsigned char)p[-1])) && value > p + n && digits &&
            ends_word(value[digits]))
            return value;
    }
    return NULL;
}

static char *look_at(const char *line, const char *name, int number)
{
    for (size_t i = 0; line[strspn(line, " \t")] != '#' && i < sizeof(sizes) / sizeof(*sizes);
         i++) {
        const char *value = number_of(line, sizes[i].option);
        if (value)
            return dt_xasprintf("%s:%d: %s %.*s is the same in every trial, and the number of "
                                "workers is not: %s",
                                name, number, sizes[i].option, (int)strspn(value, "0123456789"),
                                value, sizes[i].cure);
    }
    return NULL;
}

char *dt_submission_fixed_size(const struct dt_submission *s)
{
    int number = 0;
    char *warning = NULL;
    for (const char *p = s->script; p && *p && !warning;) {
        size_t n = strcspn(p, "\n");
        char *line = dt_xstrndup(p, n);
        warning = look_at(line, s->script_name, ++number);
        free(line);
        p += n + (p[n] == '\n');
    }
    return warning;
}
