/* dt-tune serve: another program chooses the hyperparameters, by lines of JSON on standard input
 * and output. */
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const char usage_text[] =
    "usage: dt-tune serve [OPTIONS] SCRIPT [ARGS]\n"
    "Runs the trials that another program asks for, each in the DT configuration that is fastest "
    "by\n"
    "what is known. OPTIONS are those of dt-sbatch; --dt-resume=DIR goes on with a study. "
    "Requests\n"
    "come on standard input, answers go to standard output, both a JSON object a line:\n"
    "  {\"id\": \"17\", \"hyperparameters\": {\"lr\": 0.01}}   a trial; the id is the program's "
    "own\n"
    "  {\"id\": \"17\", \"prune\": true}                     end it early\n"
    "  {\"end\": true}                                    no more requests, like the end of input\n"
    "dt-tune(1) says what is answered.\n";

/* The protocol alone goes to standard output; whatever else is printed there goes to standard
 * error. -1 on errors. */
static int take_stdout(struct dt_error *e)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return dt_fail(e, "serve: standard output: %s", strerror(errno));
    if (fcntl(STDIN_FILENO, F_GETFD) < 0)
        return dt_fail(e, "serve: standard input: %s", strerror(errno));
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return dt_fail(e, "serve: standard error: %s", strerror(errno));
    return fd;
}

/* Options that mean something else than to serve. */
static int check_options(const struct dt_submission *sub, struct dt_error *e)
{
    static const char *const others[][2] = {
        {"dt-apply", "it tunes nothing: use sbatch or dt-sbatch"},
        {"dt-config", "it tunes nothing: use dt-sbatch"},
        {"dt-dry-run", "the trials are not known beforehand: use dt-sbatch --dt-tune --dt-dry-run"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        const struct dt_option *o = dt_submission_get(sub, others[i][0]);
        if (!o)
            continue;
        char *title = dt_option_title(sub, o);
        dt_fail(e, "serve: %s has no meaning here, as %s", title, others[i][1]);
        free(title);
        return -1;
    }
    return 0;
}

static bool has_hyperparameters(const struct dt_space *space)
{
    for (size_t i = 0; i < space->n; i++)
        if (space->params[i].hyper)
            return true;
    return false;
}

/* NULL, with an error, where nothing can be served. */
static struct dt_setup *read_setup(char **argv, const char *sbatch, struct dt_error *e)
{
    struct dt_submission *sub = dt_submission_read(argv, environ, -1, sbatch, e);
    if (!sub)
        return NULL;
    if (check_options(sub, e) < 0) {
        dt_submission_free(sub);
        return NULL;
    }
    print_warnings(sub);
    struct dt_setup *s = dt_setup_new_external(sub, sbatch, e);
    if (s && !s->resume && !has_hyperparameters(s->space)) {
        dt_fail(e, "serve: there is nothing to ask for: name the hyperparameters by "
                   "--dt-param=NAME=DOMAIN or in SPEC");
        dt_setup_free(s);
        s = NULL;
    }
    if (s && !s->resume)
        warn_of_fixed_size(s);
    return s;
}

int cmd_serve(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return EXIT_DONE;
    }
    int answers = take_stdout(&e);
    if (answers < 0)
        return fail_with(&e, EXIT_USAGE);
    char *sbatch = dt_find_program("sbatch", NULL);
    if (!sbatch) {
        dt_fail(&e, "sbatch is not on PATH: load Slurm's module or install its client tools");
        return fail_with(&e, EXIT_WORK_FAILED);
    }
    slurm_init(NULL);
    struct dt_setup *s = read_setup(argv, sbatch, &e);
    free(sbatch);
    return s ? run_study_here(s, answers) : fail_with(&e, EXIT_USAGE);
}
