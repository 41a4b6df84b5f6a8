/* dt-tune prepare: started inside sbatch by the SPANK plugin, as the user. It reads the whole
 * submission again, checks it, and hands the study to the plugin; or it says in one line what is
 * wrong. */
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

#define STUDY_MAX 65535

static const char usage_text[] =
    "usage: dt-tune prepare [--sbatch=PATH] [--fd=N|--submit] [--cluster=FILE] -- "
    "SBATCH-COMMAND-LINE\n"
    "Checks a submission with --dt-tune and writes the study, one line of JSON, to descriptor N "
    "(default 1).\n"
    "With --dt-dry-run it prints the search space and the first trials' scripts instead; with "
    "--dt-apply it\n"
    "writes the word apply, and a second call with --submit submits the job.\n"
    "  --cluster=FILE   take the nodes from this JSON file instead of asking Slurm\n";

static int write_study(const struct dt_setup *s, int fd, struct dt_error *e)
{
    char *exec = dt_self_exe(e), *text = exec ? dt_setup_text(s, exec) : NULL;
    free(exec);
    if (!text)
        return -1;
    size_t len = strlen(text);
    int rc = 0;
    if (len > STUDY_MAX)
        rc = dt_fail(e,
                     "the study takes %zu bytes, the limit is %d: give fewer choices, or put "
                     "candidates into a file",
                     len, STUDY_MAX);
    text[len] = '\n';
    if (rc == 0 && dt_write_all(fd, text, len + 1) < 0)
        rc = dt_fail(e, "cannot hand the study to sbatch: %s", strerror(errno));
    free(text);
    return rc;
}

/* The word that stands in a study's place where there is nothing to tune: the plugin then starts us
 * again, to submit the job in the configuration that was found. Now is only checked whether that
 * can be done. */
#define APPLY_WORD "apply\n"

static int check_apply(const struct dt_setup *s, int fd, struct dt_error *e)
{
    char *text = expand_config(s, s->config, e);
    int rc = text ? 0 : -1;
    if (text && dt_write_all(fd, APPLY_WORD, strlen(APPLY_WORD)) < 0)
        rc = dt_fail(e, "cannot answer sbatch: %s", strerror(errno));
    free(text);
    return rc;
}

/* What is to be done with a submission that was read. */
static int act(const struct dt_setup *s, int fd, struct dt_error *e)
{
    if (dt_submission_get(s->submission, "dt-dry-run"))
        return print_dry_run(s, e);
    if (s->applied)
        return fd < 0 ? exec_config(s, e) : check_apply(s, fd, e);
    if (fd < 0)
        return dt_fail(e, "there is no configuration to submit: --dt-apply is missing");
    return check_folder(s, e) == 0 ? write_study(s, fd, e) : -1;
}

/* `fd` -1: to submit. */
static int prepare(char **sbatch_argv, const char *sbatch, const char *cluster_file, int fd,
                   struct dt_error *e)
{
    struct dt_cluster *cluster = NULL;
    if (!cluster_file)
        slurm_init(NULL);
    struct dt_submission *submission =
        dt_submission_read(sbatch_argv, environ, STDIN_FILENO, sbatch, e);
    if (!submission)
        return -1;
    if (cluster_file && !(cluster = read_cluster(cluster_file, submission, e))) {
        dt_submission_free(submission);
        return -1;
    }
    if (fd >= 0)
        print_warnings(submission);
    struct dt_setup *s = dt_setup_new(submission, sbatch, cluster, e);
    if (!s)
        return -1;
    if (fd >= 0)
        warn_of_fixed_size(s);
    int rc = act(s, fd, e);
    dt_setup_free(s);
    return rc;
}

int cmd_prepare(int argc, char **argv)
{
    static const struct option options[] = {
        {"sbatch", required_argument, NULL, 's'},  {"fd", required_argument, NULL, 'f'},
        {"cluster", required_argument, NULL, 'c'}, {"submit", no_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    const char *sbatch = NULL, *cluster = NULL;
    struct dt_error e = DT_ERROR_INIT;
    int fd = STDOUT_FILENO;
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            sbatch = optarg;
            break;
        case 'f':
            fd = atoi(optarg);
            fcntl(fd, F_SETFD,
                  FD_CLOEXEC); /* the plugin reads to its end, so no child may hold it */
            break;
        case 'c':
            cluster = optarg;
            break;
        case 'S':
            fd = -1;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return EXIT_DONE;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind >= argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    /* To submit we stand in sbatch's own place, and its exit code for all errors is 1. */
    return prepare(argv + optind, sbatch, cluster, fd, &e) < 0
               ? fail_with(&e, fd < 0 ? EXIT_WORK_FAILED : EXIT_USAGE)
               : EXIT_DONE;
}
