/* Submitting a job in one configuration: --dt-config and --dt-apply. */
#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

void add_option(struct dt_strv *argv, const struct dt_option *o)
{
    if (o->value)
        dt_strv_addf(argv, "--%s=%s", o->name, o->value);
    else
        dt_strv_addf(argv, "--%s", o->name);
}

/* They have been read and stand in the script, each where it belongs: in sbatch's eyes a variable
 * would count more than the script, and for every component. */
static void forget_sbatch_variables(void)
{
    struct dt_strv names = DT_STRV_INIT;
    for (char **v = environ; v && *v; v++)
        if (dt_starts_with(*v, "SBATCH_"))
            dt_strv_take(&names, dt_xstrndup(*v, strcspn(*v, "=")));
    for (size_t i = 0; i < names.n; i++)
        unsetenv(names.v[i]);
    dt_strv_free(&names);
}

void config_command(const struct dt_setup *s, struct dt_strv *argv)
{
    static const char *const written[] = {"job-name", "output", "error", "input", "wrap"};
    dt_strv_add(argv, s->sbatch);
    for (size_t i = 0; i < s->submission->n; i++) {
        const struct dt_option *o = &s->submission->options[i];
        bool wanted = o->def && o->def->class == DT_OPT_TUNER;
        for (size_t j = 0; j < sizeof(written) / sizeof(*written); j++)
            wanted &= strcmp(o->name, written[j]) != 0; /* in the script already */
        if (wanted)
            add_option(argv, o);
    }
    forget_sbatch_variables();
}

void print_applied(const struct dt_setup *s)
{
    if (!s->applied || dt_submission_get(s->submission, "quiet"))
        return;
    char *config = config_words(s->config);
    fprintf(stderr, "dt-tune: in the best configuration of %s: %s\n", s->applied, config);
    free(config);
}

/* A file that is there as long as somebody has it open. */
static int make_script(const char *text, struct dt_error *e)
{
    int fd = memfd_create("script", 0);
    size_t len = strlen(text), done = 0;
    while (fd >= 0 && done < len) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && done == len)
        return fd;
    dt_fail(e, "cannot hand the script to sbatch: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int exec_config(const struct dt_setup *s, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT;
    char *text = expand_config(s, s->config, e);
    int fd = text ? make_script(text, e) : -1;
    free(text);
    if (fd < 0)
        return -1;
    config_command(s, &argv);
    dt_strv_addf(&argv, "/proc/self/fd/%d", fd);
    dt_strv_addv(&argv, s->submission->args.v);
    print_applied(s);
    execv(argv.v[0], argv.v);
    dt_fail(e, "%s: %s", argv.v[0], strerror(errno));
    dt_strv_free(&argv);
    close(fd);
    return -1;
}
