#include "expand/carrier.h"

#include <stdlib.h>
#include <string.h>

#define SHEBANG "#!/bin/sh\n"
#define EXEC "exec '"
#define CARRIER_ARGS " --carrier \"$0\" \"$@\"\n"
#define JSON_MARK "#DT-TUNE-JSON "
#define SCRIPT_MARK "\n#DT-TUNE-SCRIPT\n"

/* Appends to the text, or only counts while there is no text yet: the same code measures and
 * writes, so that the two cannot disagree. */
struct out {
    char *s;
    size_t len;
};

static void put(struct out *o, const char *s, size_t n)
{
    if (o->s)
        memcpy(o->s + o->len, s, n);
    o->len += n;
}

static void puts_to(struct out *o, const char *s)
{
    put(o, s, strlen(s));
}

/* Single quotes keep everything to the letter but the single quote itself. */
static void put_quoted(struct out *o, const char *s)
{
    puts_to(o, "'");
    for (; *s; s++) {
        if (*s == '\'')
            puts_to(o, "'\\''");
        else
            put(o, s, 1);
    }
    puts_to(o, "'");
}

static void put_carrier(struct out *o, const char *header, const char *const *argv,
                        const char *json, const char *script)
{
    size_t n = strlen(header);

    puts_to(o, SHEBANG);
    puts_to(o, header);
    if (n > 0 && header[n - 1] != '\n')
        puts_to(o, "\n");
    puts_to(o, "exec");
    for (size_t i = 0; argv[i]; i++) {
        puts_to(o, " ");
        put_quoted(o, argv[i]);
    }
    puts_to(o, CARRIER_ARGS);
    puts_to(o, JSON_MARK);
    puts_to(o, json);
    puts_to(o, SCRIPT_MARK);
    puts_to(o, script);
}

char *dt_carrier_build(const char *header, const char *const *argv, const char *json,
                       const char *script)
{
    struct out o = {NULL, 0};

    if (strchr(json, '\n'))
        return NULL;
    /* A word with a newline would break the exec line in two, and nobody could find the parts
     * again. */
    for (size_t i = 0; argv[i]; i++) {
        if (strchr(argv[i], '\n'))
            return NULL;
    }
    put_carrier(&o, header, argv, json, script);
    o.s = malloc(o.len + 1);
    if (!o.s)
        return NULL;
    o.len = 0;
    put_carrier(&o, header, argv, json, script);
    o.s[o.len] = '\0';
    return o.s;
}

/* Whether the line before `end` (which points just behind its newline) is the exec line of a
 * carrier: a script that only quotes a carrier, in a here-document for example, must not be taken
 * for one. */
static int is_exec_line(const char *text, const char *end)
{
    size_t tail = strlen(CARRIER_ARGS);
    const char *start = end - 1;

    while (start > text && start[-1] != '\n')
        start--;
    return (size_t)(end - start) > tail + strlen(EXEC) && !strncmp(start, EXEC, strlen(EXEC)) &&
           !strncmp(end - tail, CARRIER_ARGS, tail);
}

int dt_carrier_parse(const char *text, struct dt_carrier *c)
{
    const char *mark, *eol;

    if (strncmp(text, SHEBANG, strlen(SHEBANG)) != 0)
        return -1;
    mark = strstr(text, "\n" JSON_MARK);
    if (!mark || !is_exec_line(text, mark + 1))
        return -1;
    c->json = mark + 1 + strlen(JSON_MARK);
    eol = strchr(c->json, '\n');
    if (!eol || strncmp(eol, SCRIPT_MARK, strlen(SCRIPT_MARK)) != 0)
        return -1;
    c->json_len = (size_t)(eol - c->json);
    c->script = eol + strlen(SCRIPT_MARK);
    return 0;
}
