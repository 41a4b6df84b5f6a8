/* dt-sbatch: sbatch with --dt-tune, for clusters without the plugins. */
#include "expand/carrier.h"
#include "plugin/options.h"
#include "tools/tools.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void usage(FILE *f)
{
    fputs("usage: dt-sbatch [OPTIONS] SCRIPT [ARGS]\n"
          "Like sbatch, and in addition, without any plugin:\n",
          f);
    for (size_t i = 0; i < DT_OPTION_COUNT; i++) {
        const struct dt_option_entry *o = &dt_option_table[i];
        char *left = o->arginfo ? dt_xasprintf("--%s%s=%s%s", o->name,
                                               o->has_arg == DT_ARG_OPTIONAL ? "[" : "", o->arginfo,
                                               o->has_arg == DT_ARG_OPTIONAL ? "]" : "")
                                : dt_xasprintf("--%s", o->name);
        fprintf(f, "  %-28s %s\n", left, o->usage);
        free(left);
    }
    fputs("  --here                       with --dt-tune: run the tuner in the foreground, on this "
          "host\n"
          "  --dt-config=C.json           submit SCRIPT once, in this configuration ({\"ps\": 1, "
          "\"workers\": 4})\n"
          "All other options are sbatch's own.\n",
          f);
}

/* Whether the tuning job has it in another way: its script holds what --wrap says. */
static bool is_told(const struct dt_option *o)
{
    return strcmp(o->name, "job-name") == 0 || strcmp(o->name, "wrap") == 0;
}

/* The options of the submission that the tuning job keeps: who pays and where it may run, and all
 * that was never meant for a trial. What a trial must have (features, nodes, licences) could keep
 * the tuner from starting. */
static void add_tuner_options(struct dt_strv *argv, const struct dt_setup *s)
{
    static const char *const kept[] = {"partition", "account",      "qos",       "reservation",
                                       "chdir",     "export",       "wckey",     "nice",
                                       "comment",   "propagate",    "mail-type", "mail-user",
                                       "signal",    "get-user-env", "uid",       "gid"};
    const struct dt_submission *sub = s->submission;
    for (size_t i = 0; i < sub->n; i++) {
        const struct dt_option *o = &sub->options[i];
        bool keep = o->def && o->def->class == DT_OPT_TUNER && !is_told(o);
        for (size_t j = 0; j < sizeof(kept) / sizeof(*kept); j++)
            keep |= strcmp(o->name, kept[j]) == 0;
        if (s->conf.tuner_partition && strcmp(o->name, "partition") == 0)
            keep = false;
        if (keep && dt_submission_get(sub, o->name) == o)
            add_option(argv, o);
    }
    if (!dt_submission_get(sub, "signal"))
        dt_strv_add(argv, "--signal=B:TERM@60");
    dt_strv_addf(argv, "--job-name=%s", s->job.name);
    dt_strv_add(argv, "--ignore-pbs");
    dt_strv_add(argv, "--ntasks=1");
    dt_strv_add(argv, "--cpus-per-task=1");
}

/* With layout steps the tuning job is the user's, as large as they ask for, and the tuner knows when
 * its time is up. */
static void add_all_options(struct dt_strv *argv, const struct dt_setup *s)
{
    const struct dt_submission *sub = s->submission;
    for (size_t i = 0; i < sub->n; i++) {
        const struct dt_option *o = &sub->options[i];
        bool ours = o->def && o->def->class == DT_OPT_DT;
        if (!ours && !is_told(o) && dt_submission_get(sub, o->name) == o)
            add_option(argv, o);
    }
    dt_strv_addf(argv, "--job-name=%s", s->job.name);
    if (!dt_submission_get(sub, "ignore-pbs"))
        dt_strv_add(argv, "--ignore-pbs");
}

/* What the tuner itself needs, and where the administrator wants it. */
static void add_tuner_size(struct dt_strv *argv, struct json_object *tuner)
{
    const char *partition = dt_json_str(tuner, "partition", NULL);
    dt_strv_addf(argv, "--mem=%ldM", (long)dt_json_int(tuner, "mem_mib", 512));
    if (partition)
        dt_strv_addf(argv, "--partition=%s", partition);
    if (dt_json_get(tuner, "time_min"))
        dt_strv_addf(argv, "--time=%ld", (long)dt_json_int(tuner, "time_min", 0));
}

/* Runs sbatch on a script of ours, its words going straight to the user. Returns its exit code. */
static int submit_text(struct dt_strv *argv, const char *text, const struct dt_strv *args,
                       struct dt_error *e)
{
    const char *tmp = getenv("TMPDIR");
    char *path = dt_xasprintf("%s/dt-sbatch.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    int rc = fd < 0 ? dt_fail(e, "%s: %s", path, strerror(errno))
                    : dt_write_file(path, text, strlen(text), 0700, e);
    if (fd >= 0)
        close(fd);
    if (rc == 0) {
        struct dt_proc_result r;
        dt_strv_add(argv, path);
        dt_strv_addv(argv, args->v);
        rc = dt_proc_run(argv->v, NULL, 0, &r, e);
        if (rc == 0) {
            fputs(r.out, stdout);
            fputs(r.err, stderr);
            rc = WIFEXITED(r.status) ? WEXITSTATUS(r.status) : EXIT_WORK_FAILED;
            dt_proc_result_free(&r);
        }
    }
    if (fd >= 0)
        unlink(path);
    free(path);
    return rc;
}

static int submit_tuning_job(const struct dt_setup *s, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT;
    char *tune = sibling("dt-tune", e), *doc = tune ? dt_setup_text(s, tune) : NULL, *text = NULL;
    int rc = -1;
    if (doc) {
        const char *run[] = {tune, "run", NULL};
        text = dt_carrier_build("", run, doc, s->script);
        if (!text)
            dt_fail(e, "the tuning job's script cannot be built (out of memory)");
    }
    if (text) {
        struct json_object *o = dt_json_parse(doc, "study", e), *tuner = dt_json_get(o, "tuner");
        dt_strv_add(&argv, s->sbatch);
        if (s->spec->layout == DT_LAYOUT_STEPS) {
            add_all_options(&argv, s);
        } else {
            add_tuner_options(&argv, s);
            add_tuner_size(&argv, tuner);
        }
        json_object_put(o);
        rc = submit_text(&argv, text, &s->submission->args, e);
    }
    dt_strv_free(&argv);
    free(text);
    free(doc);
    free(tune);
    return rc;
}

static int submit_config(const struct dt_setup *s, struct dt_error *e)
{
    struct dt_strv argv = DT_STRV_INIT;
    char *text = expand_config(s, s->config, e);
    int rc = -1;
    if (!text && !s->applied)
        dt_fail_at(e, "--dt-config");
    if (text) {
        config_command(s, &argv);
        print_applied(s);
        rc = submit_text(&argv, text, &s->submission->args, e);
    }
    dt_strv_free(&argv);
    free(text);
    return rc;
}

/* Nothing is to be tuned: sbatch itself, with its own words. */
static int exec_sbatch(const char *sbatch, char **argv, const struct dt_submission *s,
                       struct dt_error *e)
{
    if (s->script &&
        strcmp(s->script_path, "standard input") == 0) { /* we have read it: hand it on */
        int fd = memfd_create("script", 0);
        FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");
        if (f) {
            fwrite(s->script, 1, s->script_len, f);
            fclose(f);
            lseek(fd, 0, SEEK_SET);
            dup2(fd, STDIN_FILENO);
        }
    }
    argv[0] = (char *)sbatch;
    execv(sbatch, argv);
    return dt_fail(e, "%s: %s", sbatch, strerror(errno));
}

/* The options that say how to tune, where nothing is to be tuned. */
static int need_tune(const struct dt_submission *sub, struct dt_error *e)
{
    for (size_t i = 0; i < sub->n; i++) {
        const struct dt_option *o = &sub->options[i];
        if (!o->def || o->def->class != DT_OPT_DT || strcmp(o->name, "dt-config") == 0)
            continue;
        char *title = dt_option_title(sub, o);
        dt_fail(e, "%s needs --dt-tune", title);
        free(title);
        return -1;
    }
    return 0;
}

/* An exit code, or -1 with an error. */
static int submit(char **argv, const char *sbatch, struct dt_error *e)
{
    struct dt_submission *sub = dt_submission_read(argv, environ, STDIN_FILENO, sbatch, e);
    if (!sub)
        return -1;
    bool tune = dt_submission_get(sub, "dt-tune") || dt_submission_get(sub, "dt-resume");
    bool here = dt_submission_get(sub, "here"), dry = dt_submission_get(sub, "dt-dry-run");
    int applies = dt_setup_applies(sub, e);
    if (applies < 0) {
        dt_submission_free(sub);
        return -1;
    }
    tune = tune && !applies;
    if (!tune && !applies && !dt_submission_get(sub, "dt-config")) {
        int rc = need_tune(sub, e) < 0 ? -1 : exec_sbatch(sbatch, argv, sub, e);
        dt_submission_free(sub);
        return rc;
    }
    print_warnings(sub);
    struct dt_setup *s = dt_setup_new(sub, sbatch, NULL, e);
    if (!s)
        return -1;
    warn_of_fixed_size(s);
    if (tune && here && !dry)
        return run_study_here(s, -1);
    int rc = -1;
    if (dry)
        rc = print_dry_run(s, e);
    else if (!tune)
        rc = submit_config(s, e);
    else if (check_folder(s, e) == 0)
        rc = submit_tuning_job(s, e);
    dt_setup_free(s);
    return rc;
}

int main(int argc, char **argv)
{
    struct dt_error e = DT_ERROR_INIT;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return EXIT_DONE;
    }
    char *sbatch = dt_find_program("sbatch", NULL);
    if (!sbatch) {
        dt_fail(&e, "sbatch is not on PATH: load Slurm's module or install its client tools");
        return fail_with(&e, EXIT_WORK_FAILED);
    }
    slurm_init(NULL);
    int rc = submit(argv, sbatch, &e);
    free(sbatch);
    return rc < 0 ? fail_with(&e, EXIT_USAGE) : rc;
}
