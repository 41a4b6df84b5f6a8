/* The job_submit plugin driven as slurmctld drives it, with the requests that sbatch makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int slurm_strings; /* made by the plugin and not freed yet */

#include "plugin/job_submit_dt_tune.c"
#include "plugin/enforce.c"

#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static char no_conf[] = "/nonexistent/slurm.conf";
slurm_conf_t slurm_conf = {.slurm_conf = no_conf};
static char last_log[1024];
static int log_lines;

void slurm_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(last_log, sizeof(last_log), format, ap);
    va_end(ap);
    log_lines++;
}

char *slurm_xstrdup(const char *s)
{
    slurm_strings += s != NULL;
    return s ? strdup(s) : NULL;
}

void slurm_xfree(void **p)
{
    slurm_strings -= *p != NULL;
    free(*p);
    *p = NULL;
}

#define OPTION "_SLURM_SPANK_OPTION_dt_tune_dt_tune=(null)"
#define STUDY                                                                                      \
    "{\"version\":1,\"exec\":\"/opt/dt/"                                                           \
    "dt-tune\",\"tuner\":{\"mem_mib\":512,\"time_min\":600},\"spec\":{}}"
#define SCRIPT "#!/bin/bash\n#SBATCH --dt-tune\nsrun train\n"

static void add(char ***list, uint32_t *n, const char *entry)
{
    *list = realloc(*list, (*n + 2) * sizeof(char *));
    (*list)[(*n)++] = slurm_xstrdup(entry);
    (*list)[*n] = NULL;
}

static void add_control(job_desc_msg_t *job, const char *entry)
{
    add(&job->spank_job_env, &job->spank_job_env_size, entry);
}

static void set(char **field, const char *value)
{
    slurm_xfree((void **)field);
    *field = slurm_xstrdup(value);
}

static const char *const size_variables[] = {
    "SLURM_NTASKS=12",
    "SLURM_NPROCS=12",
    "SLURM_CPUS_PER_TASK=2",
    "SLURM_GPUS_PER_TASK=1",
    "SLURM_MEM_PER_CPU=2048",
    "SLURM_SPANK_DT_TUNE_STUDY={}",
    "SLURM_SPANK__SLURM_SPANK_OPTION_dt_tune_dt_tune=(null)",
    "_SLURM_SPANK_OPTION_dt_tune_dt_tune=",
};
static const char *const other_variables[] = {
    "PATH=/usr/bin",       "SLURM_JOB_NAME=train", "SLURM_SUBMIT_DIR=/home/u",
    "SLURM_RLIMIT_CPU=99", "MY_SLURM_NTASKS=3",    "SLURM_SPANK_OTHER=1",
};

static job_desc_msg_t *new_job(void)
{
    job_desc_msg_t *job = calloc(1, sizeof(*job));

    slurm_strings = 0;
    job->het_job_offset = NO_VAL;
    job->num_tasks = 12;
    job->cpus_per_task = 2;
    job->min_cpus = 24;
    job->max_cpus = 48;
    job->min_nodes = 3;
    job->max_nodes = 6;
    job->ntasks_per_node = 4;
    job->pn_min_memory = 2048 | MEM_PER_CPU;
    job->pn_min_tmp_disk = 100;
    job->shared = 0;
    job->contiguous = 1;
    job->time_limit = 30;
    job->time_min = 20;
    job->nice = 5;
    set(&job->script, SCRIPT);
    set(&job->tres_per_task, "gres:gpu:1");
    set(&job->features, "fast");
    set(&job->licenses, "matlab:2");
    set(&job->req_nodes, "h1");
    set(&job->exc_nodes, "h2");
    set(&job->partition, "main");
    for (size_t i = 0; i < 6; i++) {
        add(&job->environment, &job->env_size, other_variables[i]);
        add(&job->environment, &job->env_size, size_variables[i]);
    }
    add(&job->environment, &job->env_size, size_variables[6]);
    add(&job->environment, &job->env_size, size_variables[7]);
    return job;
}

static void free_list(char **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        slurm_xfree((void **)&list[i]);
    free(list);
}

/* Also checks that the plugin neither lost a string of Slurm's nor left one behind. */
static void free_job(job_desc_msg_t *job)
{
    char **strings[] = {&job->script,    &job->comment,   &job->tres_per_task,
                        &job->features,  &job->licenses,  &job->req_nodes,
                        &job->exc_nodes, &job->partition, &job->array_inx};

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        slurm_xfree((void **)strings[i]);
    free_list(job->environment, job->env_size);
    free_list(job->spank_job_env, job->spank_job_env_size);
    free(job);
    assert_int_equal(slurm_strings, 0);
}

static job_desc_msg_t *new_tuned_job(const char *study)
{
    job_desc_msg_t *job = new_job();

    add_control(job, "OTHER=1");
    add_control(job, OPTION);
    if (study) {
        char *entry = malloc(strlen(study) + 32);

        sprintf(entry, "DT_TUNE_STUDY=%s", study);
        add_control(job, entry);
        free(entry);
    }
    return job;
}

static void submit(job_desc_msg_t *job)
{
    char *err = NULL;

    assert_int_equal(job_submit(job, 1000, &err), SLURM_SUCCESS);
    assert_null(err);
}

/* Refused with this code and a line that holds `word`, and not touched. */
static void check_refused(job_desc_msg_t *job, int rc, const char *word)
{
    char *err = NULL;
    uint32_t n = job->spank_job_env_size;

    assert_int_equal(job_submit(job, 1000, &err), rc);
    assert_non_null(err);
    if (!strstr(err, word) || strchr(err, '\n') || strncmp(err, "dt-tune: ", 9) != 0)
        fail_msg("unexpected message: %s", err);
    slurm_xfree((void **)&err);
    assert_int_equal(job->num_tasks, 12);
    assert_int_equal(job->spank_job_env_size, n);
    free_job(job);
}

static void test_ordinary_job(void **state)
{
    job_desc_msg_t *job = new_job(), before;

    (void)state;
    add_control(job, "OTHER_DT_TUNE=_SLURM_SPANK_OPTION_dt_tune_dt_tune=");
    add_control(job, "_SLURM_SPANK_OPTION_dt_tuner_x=1");
    before = *job;
    submit(job);
    assert_memory_equal(job, &before, sizeof(before));
    job->het_job_offset = 0;
    before = *job;
    submit(job);
    assert_memory_equal(job, &before, sizeof(before));
    free_job(job);
}

static void test_ignored_option(void **state)
{
    job_desc_msg_t *job = new_tuned_job(NULL), before;

    (void)state;
    add_control(job, "DT_TUNE_INHERITED=1");
    before = *job;
    submit(job);
    assert_memory_equal(job, &before, sizeof(before));
    free_job(job);
}

static void test_script(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);

    (void)state;
    submit(job);
    assert_string_equal(job->script,
                        "#!/bin/sh\nexec '/opt/dt/dt-tune' 'run' --carrier \"$0\" \"$@\"\n"
                        "#DT-TUNE-JSON " STUDY "\n#DT-TUNE-SCRIPT\n" SCRIPT);
    free_job(job);
}

static void test_one_task(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);

    (void)state;
    submit(job);
    assert_int_equal(job->num_tasks, 1);
    assert_int_equal(job->cpus_per_task, 1);
    assert_int_equal(job->min_cpus, 1);
    assert_int_equal(job->max_cpus, NO_VAL);
    assert_int_equal(job->min_nodes, 1);
    assert_int_equal(job->max_nodes, 1);
    assert_int_equal(job->ntasks_per_node, NO_VAL16);
    assert_int_equal(job->pn_min_memory, 512);
    assert_int_equal(job->pn_min_tmp_disk, NO_VAL);
    assert_int_equal(job->shared, NO_VAL16);
    assert_int_equal(job->contiguous, NO_VAL16);
    assert_int_equal(job->time_limit, 600);
    assert_int_equal(job->time_min, NO_VAL);
    assert_null(job->tres_per_task);
    assert_null(job->features);
    assert_null(job->licenses);
    assert_null(job->req_nodes);
    assert_string_equal(job->exc_nodes, "h2");
    assert_string_equal(job->partition, "main");
    assert_string_equal(job->comment, "dt-tune");
    assert_int_equal(job->nice, 5);
    assert_int_equal(job->warn_signal, SIGTERM);
    assert_int_equal(job->warn_time, 60);
    assert_int_equal(job->warn_flags, KILL_JOB_BATCH);
    free_job(job);
}

/* With layout steps the trials share the job: nothing but its script and comment changes. */
static void test_steps(void **state)
{
    job_desc_msg_t *job =
        new_tuned_job("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"steps\":true},\"spec\":{}}");
    uint32_t env = job->env_size;

    (void)state;
    submit(job);
    assert_non_null(strstr(job->script, "\nexec '/a' 'run' --carrier"));
    assert_int_equal(job->num_tasks, 12);
    assert_int_equal(job->cpus_per_task, 2);
    assert_int_equal(job->min_cpus, 24);
    assert_int_equal(job->min_nodes, 3);
    assert_int_equal(job->max_nodes, 6);
    assert_int_equal(job->ntasks_per_node, 4);
    assert_true(job->pn_min_memory == (2048 | MEM_PER_CPU));
    assert_int_equal(job->time_limit, 30);
    assert_int_equal(job->contiguous, 1);
    assert_string_equal(job->tres_per_task, "gres:gpu:1");
    assert_string_equal(job->features, "fast");
    assert_string_equal(job->licenses, "matlab:2");
    assert_string_equal(job->req_nodes, "h1");
    assert_string_equal(job->comment, "dt-tune");
    assert_int_equal(job->warn_signal, 0); /* the tuner looks at the time itself */
    assert_int_equal(job->env_size, env - 3); /* our own entries */
    assert_string_equal(job->environment[1], "SLURM_NTASKS=12");
    assert_int_equal(job->spank_job_env_size, 1);
    free_job(job);
}

static void test_kept_wishes(void **state)
{
    job_desc_msg_t *job =
        new_tuned_job("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":64},\"spec\":{}}");

    (void)state;
    set(&job->comment, "mine");
    job->warn_signal = SIGUSR1;
    job->warn_time = 300;
    submit(job);
    assert_string_equal(job->comment, "mine");
    assert_int_equal(job->warn_signal, SIGUSR1);
    assert_int_equal(job->warn_time, 300);
    assert_int_equal(job->warn_flags, 0);
    assert_int_equal(job->time_limit, 30);
    assert_int_equal(job->time_min, 20);
    assert_int_equal(job->pn_min_memory, 64);
    free_job(job);
}

static void test_environments(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);

    (void)state;
    submit(job);
    assert_int_equal(job->env_size, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(job->environment[i], other_variables[i]);
    assert_null(job->environment[6]);
    assert_int_equal(job->spank_job_env_size, 1);
    assert_string_equal(job->spank_job_env[0], "OTHER=1");
    free_job(job);
}

/* As with several job_submit plugins, or a sibling cluster's slurmctld. */
static void test_second_look(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY), before;

    (void)state;
    submit(job);
    before = *job;
    submit(job);
    assert_memory_equal(job, &before, sizeof(before));
    free_job(job);
}

#if DT_SLURM_AT_LEAST(22, 5)
/* The hash that a submission with this study leaves in the script's place, having come with all
 * zeros. */
static void hash_after(const char *study, int type, slurm_hash_t *script, slurm_hash_t *env)
{
    job_desc_msg_t *job = new_tuned_job(study);

    job->script_hash.type = job->env_hash.type = (unsigned char)type;
    submit(job);
    *script = job->script_hash;
    *env = job->env_hash;
    free_job(job);
}

static void test_hashes(void **state)
{
    slurm_hash_t none, script, other_script, env;
    static const unsigned char zero[sizeof(none.hash)];

    (void)state;
    hash_after(STUDY, 0, &none, &env);
    assert_memory_equal(none.hash, zero, sizeof(zero));
    assert_memory_equal(env.hash, zero, sizeof(zero));
    hash_after("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":512}}", 2, &other_script,
               &env);
    hash_after(STUDY, 2, &script, &env);
    assert_memory_not_equal(script.hash, zero, sizeof(zero));
    assert_memory_not_equal(env.hash, zero, sizeof(zero));
    assert_memory_not_equal(script.hash, other_script.hash, sizeof(zero));
}
#endif

static void test_refused_kinds(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);
    const char *argv[] = {"/x", NULL};
    char *carrier = dt_carrier_build("", argv, "{}", SCRIPT);

    (void)state;
    set(&job->array_inx, "0-3");
    check_refused(job, ESLURM_INVALID_ARRAY, "--array");

    job = new_tuned_job(STUDY);
    job->het_job_offset = 0;
    check_refused(job, ESLURM_NOT_SUPPORTED, "heterogeneous");

    job = new_tuned_job(STUDY);
    job->het_job_offset = 1;
    set(&job->script, NULL);
    check_refused(job, ESLURM_NOT_SUPPORTED, "heterogeneous");

    job = new_tuned_job(STUDY);
    set(&job->script, NULL);
    check_refused(job, ESLURM_BATCH_ONLY, "sbatch");

    job = new_tuned_job(STUDY);
    set(&job->script, carrier);
    check_refused(job, ESLURM_NOT_SUPPORTED, "dt-tune made");
    free(carrier);

    check_refused(new_tuned_job(NULL), ESLURM_NOT_SUPPORTED, "missing");
}

/* A message that an earlier plugin left is replaced, not lost from memory. */
static void test_earlier_message(void **state)
{
    job_desc_msg_t *job = new_tuned_job(NULL);
    char *err = slurm_xstrdup("hello");

    (void)state;
    assert_int_equal(job_submit(job, 1000, &err), ESLURM_NOT_SUPPORTED);
    assert_non_null(strstr(err, "missing"));
    slurm_xfree((void **)&err);
    free_job(job);
}

static void test_bad_studies(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"version\":2,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":512},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"a\",\"tuner\":{\"mem_mib\":512},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/\",\"tuner\":{\"mem_mib\":512},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\\\"b\",\"tuner\":{\"mem_mib\":512},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\tb\",\"tuner\":{\"mem_mib\":512},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":0},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":-5},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":9999999999},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":512,\"time_min\":x},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":512",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"steps\":false},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"steps\":true,\"mem_mib\":5},\"spec\":{}}",
        "{\"version\":1,\"exec\":\"/a\",\"spec\":{},\"tuner\":{\"mem_mib\":512}}",
        "{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":512},\n\"spec\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_refused(new_tuned_job(bad[i]), ESLURM_NOT_SUPPORTED, "same version");
}

static void test_study_limit(void **state)
{
    char *study = malloc(DT_STUDY_LIMIT + 1);
    size_t n = strlen(STUDY);
    job_desc_msg_t *job;

    (void)state;
    memcpy(study, STUDY, n);
    memset(study + n, ' ', DT_STUDY_LIMIT - n);
    study[DT_STUDY_LIMIT] = '\0';
    check_refused(new_tuned_job(study), ESLURM_PATHNAME_TOO_LONG, "64 KiB");
    study[DT_STUDY_LIMIT - 1] = '\0';
    job = new_tuned_job(study);
    submit(job);
    free_job(job);
    free(study);
}

static void test_modify(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY), before = *job;

    (void)state;
#if DT_SLURM_AT_LEAST(23, 2)
    char *err = NULL;

    assert_int_equal(job_modify(job, NULL, 1000, &err), SLURM_SUCCESS);
#else
    assert_int_equal(job_modify(job, NULL, 1000), SLURM_SUCCESS);
#endif
    assert_memory_equal(job, &before, sizeof(before));
    free_job(job);
}

/* ---- dt-tune.conf ---- */

static char folder[] = "/tmp/dt-job-submit.XXXXXX", *conf_path;

static void write_conf(const char *text)
{
    FILE *f = fopen(conf_path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* As a reconfiguration in this second. */
static void reconfigure(const char *text)
{
    write_conf(text);
    slurm_conf.last_update = time(NULL);
}

static int conf_setup(void **state)
{
    char *slurm = NULL;

    (void)state;
    if (!mkdtemp(folder) || asprintf(&slurm, "%s/slurm.conf", folder) < 0 ||
        asprintf(&conf_path, "%s/dt-tune.conf", folder) < 0)
        return -1;
    fini(); /* what the tests before have read */
    slurm_conf.slurm_conf = slurm;
    log_lines = 0;
    return 0;
}

static int conf_teardown(void **state)
{
    (void)state;
    fini();
    unlink(conf_path);
    rmdir(folder);
    strcpy(strrchr(folder, '.'), ".XXXXXX");
    free(conf_path);
    free(slurm_conf.slurm_conf);
    slurm_conf.slurm_conf = NULL;
    slurm_conf.last_update = 0;
    return 0;
}

static job_desc_msg_t *job_of(uint32_t user, uint32_t group, char *account)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);

    job->user_id = user;
    job->group_id = group;
    job->account = account;
    return job;
}

static void check_allowed(job_desc_msg_t *job)
{
    submit(job);
    assert_int_equal(job->num_tasks, 1);
    free_job(job);
}

static void test_tuner_by_conf(void **state)
{
    job_desc_msg_t *job = new_tuned_job(STUDY);

    (void)state;
    write_conf("TunerPartition=tuners\nTunerMemory=1G\nTunerTime=1:00:00\n");
    assert_int_equal(init(), SLURM_SUCCESS);
    submit(job);
    assert_string_equal(job->partition, "tuners");
    assert_int_equal(job->pn_min_memory, 1024);
    assert_int_equal(job->time_limit, 60);
    assert_int_equal(job->time_min, NO_VAL);
    free_job(job);

    /* One that has no limit gets it, a shorter one stays. */
    job = new_tuned_job("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":64},\"spec\":{}}");
    job->time_limit = NO_VAL;
    submit(job);
    assert_int_equal(job->time_limit, 60);
    free_job(job);
    job = new_tuned_job("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"mem_mib\":64},\"spec\":{}}");
    submit(job);
    assert_int_equal(job->time_limit, 30);
    assert_int_equal(job->time_min, 20);
    free_job(job);

    /* With layout steps the job is where its trials are. */
    job = new_tuned_job("{\"version\":1,\"exec\":\"/a\",\"tuner\":{\"steps\":true},\"spec\":{}}");
    submit(job);
    assert_string_equal(job->partition, "main");
    assert_true(job->pn_min_memory == (2048 | MEM_PER_CPU));
    assert_int_equal(job->time_limit, 30);
    free_job(job);
    assert_int_equal(log_lines, 0);
}

static void test_allowed_users(void **state)
{
    (void)state;
    write_conf("AllowUsers = root, nobody, no-such-user\nAllowAccounts=phys,chem\n");
    init();
    check_allowed(job_of(0, 77, "phys"));
    check_refused(job_of(1, 77, "phys"), ESLURM_ACCESS_DENIED, "AllowUsers=root,nobody");
    check_refused(job_of(0, 0, "bio"), ESLURM_ACCESS_DENIED, "AllowAccounts=phys,chem");
    check_refused(job_of(0, 0, "phy"), ESLURM_ACCESS_DENIED, "AllowAccounts=phys,chem");
    check_refused(job_of(0, 0, NULL), ESLURM_ACCESS_DENIED, "--account");
    check_refused(job_of(1, 1, "phys"), ESLURM_ACCESS_DENIED, conf_path);
    /* An ordinary job is nobody's business. */
    job_desc_msg_t *job = new_job(), before = *job;
    job->user_id = before.user_id = 1;
    submit(job);
    assert_memory_equal(job, &before, sizeof(before));
    free_job(job);
}

static void test_allowed_groups(void **state)
{
    const struct group *daemon = getgrnam("daemon");

    (void)state;
    if (!daemon)
        skip();
    write_conf("AllowGroups=daemon\n");
    init();
    check_allowed(job_of(4711, daemon->gr_gid, NULL));
    check_refused(job_of(4711, daemon->gr_gid + 4000, NULL), ESLURM_ACCESS_DENIED,
                  "AllowGroups=daemon");
}

static void test_reconfigured(void **state)
{
    (void)state;
    init(); /* no file: nothing is limited */
    assert_int_equal(log_lines, 0);
    check_allowed(job_of(1, 1, NULL));

    reconfigure("Refuse=\"back on Monday\" # really\n");
    check_refused(job_of(1, 1, NULL), ESLURM_ACCESS_DENIED, "Refuse=back on Monday");

    /* A bad file changes nothing and is said once. */
    reconfigure("Refuse=\"back on Monday\nAllowUser=root\n");
    check_refused(job_of(1, 1, NULL), ESLURM_ACCESS_DENIED, "Refuse=back on Monday");
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(last_log, "line 1: Refuse: quotes"));
    assert_non_null(strstr(last_log, conf_path));
    assert_non_null(strstr(last_log, "stays in force"));

    unlink(conf_path);
    slurm_conf.last_update = time(NULL);
    check_allowed(job_of(1, 1, NULL));

    /* Without a reconfiguration the file is not looked at. */
    slurm_conf.last_update = 2;
    check_allowed(job_of(1, 1, NULL));
    write_conf("Refuse=x\n");
    check_allowed(job_of(1, 1, NULL));

    /* After one it is, also where the clock has been set back since the last. */
    slurm_conf.last_update = 1;
    check_refused(job_of(1, 1, NULL), ESLURM_ACCESS_DENIED, "Refuse=x");
}

static void test_bad_from_the_start(void **state)
{
    (void)state;
    write_conf("MaxParalel=3\n");
    assert_int_equal(init(), SLURM_SUCCESS); /* slurmctld starts */
    assert_int_equal(log_lines, 1);
    assert_non_null(strstr(last_log, "MaxParalel"));
    check_refused(job_of(1, 1, NULL), ESLURM_ACCESS_DENIED, "cannot be used");
    reconfigure("MaxParallel=3\n");
    check_allowed(job_of(1, 1, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_job),
        cmocka_unit_test(test_ignored_option),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_one_task),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_kept_wishes),
        cmocka_unit_test(test_environments),
        cmocka_unit_test(test_second_look),
#if DT_SLURM_AT_LEAST(22, 5)
        cmocka_unit_test(test_hashes),
#endif
        cmocka_unit_test(test_refused_kinds),
        cmocka_unit_test(test_earlier_message),
        cmocka_unit_test(test_bad_studies),
        cmocka_unit_test(test_study_limit),
        cmocka_unit_test(test_modify),
#define CONF_TEST(f) cmocka_unit_test_setup_teardown(f, conf_setup, conf_teardown)
        CONF_TEST(test_tuner_by_conf),
        CONF_TEST(test_allowed_users),
        CONF_TEST(test_allowed_groups),
        CONF_TEST(test_reconfigured),
        CONF_TEST(test_bad_from_the_start),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
