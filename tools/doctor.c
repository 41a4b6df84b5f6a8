/* Whether dt-tune is set up well on this host, and a cure for what is not. */
#include "backend/backend.h"
#include "conf/limits.h"
#include "history/history.h"
#include "tools/tools.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <math.h>
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: dt-tune doctor [--no-plugins]\n"
    "Looks at how dt-tune and Slurm are set up, as seen from this host and folder; says what is "
    "wrong and what\n"
    "to do about it. Run it in the folder that you submit from.\n"
    "  --no-plugins  for dt-sbatch alone, which needs none\n";

/* Clocks further apart than this make waits and durations wrong. */
#define CLOCK_S 3.0
/* Less, and jobs may be forgotten before a tuner that was busy has seen how they ended. */
#define JOB_AGE_S 60

struct visit {
    struct dt_site site;
    size_t bad;
};

/* ---- what is said ---- */

static void well(const char *fmt, ...) DT_PRINTF(1, 2);
static void note(const char *cure, const char *fmt, ...) DT_PRINTF(2, 3);
static void bad(struct visit *v, const char *cure, const char *fmt, ...) DT_PRINTF(3, 4);

static void say(const char *mark, const char *fmt, va_list ap, const char *cure)
{
    printf("%-5s ", mark);
    vprintf(fmt, ap);
    printf("\n");
    if (cure)
        printf("      -> %s\n", cure);
}

static void well(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("ok", fmt, ap, NULL);
    va_end(ap);
}

/* Nothing is wrong, but one should know. */
static void note(const char *cure, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("note", fmt, ap, cure);
    va_end(ap);
}

static void bad(struct visit *v, const char *cure, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("BAD", fmt, ap, cure);
    va_end(ap);
    v->bad++;
}

/* ---- programs ---- */

static void check_programs(struct visit *v)
{
    struct dt_error e = DT_ERROR_INIT;
    char *launch = sibling("dt-launch", &e), *sbatch = dt_find_program("sbatch", NULL),
         *page = data_file("echarts.min.js");
    if (launch && access(launch, X_OK) == 0)
        well("dt-tune %s, with dt-launch beside it", DT_VERSION);
    else
        bad(v,
            "install all of dt-tune in one folder that the compute nodes have, too: they start "
            "dt-launch",
            "dt-launch is not beside dt-tune (%s)", launch ? launch : "?");
    if (sbatch)
        well("sbatch is %s", sbatch);
    else
        bad(v,
            "put Slurm's commands into PATH, also that of compute nodes, where the tuning job "
            "submits",
            "there is no sbatch in PATH");
    if (access(page, R_OK) == 0)
        well("the data of report.html is there");
    else
        bad(v,
            "install dt-tune's data files, on compute nodes too; without them a study has no "
            "report.html",
            "%s: %s", page, strerror(errno));
    dt_error_clear(&e);
    free(launch);
    free(sbatch);
    free(page);
}

/* Whether a program ran well; *out, the caller's, is what it printed. */
static bool runs(const char *const *argv, char **out)
{
    struct dt_proc_result r;
    struct dt_error e = DT_ERROR_INIT;
    *out = NULL;
    if (dt_proc_run((char *const *)argv, NULL, 30, &r, &e) < 0) {
        *out = dt_xstrdup(e.text);
        dt_error_clear(&e);
        return false;
    }
    bool fine = WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0;
    *out = dt_xstrdup(fine ? r.out : r.err);
    dt_proc_result_free(&r);
    return fine;
}

/* `answers`: slurmctld does, so what it says of itself is known. */
static void check_munge(struct visit *v, bool answers)
{
    static const char key[] = "socket=";
    const char *socket = answers ? strstr(v->site.auth_info, key) : NULL;
    if (answers && strcmp(v->site.auth, "auth/munge") != 0) {
        well("slurmctld knows who we are by %s", v->site.auth);
        return;
    }
    char *path = socket ? dt_xstrdup(socket + strlen(key)) : NULL, *out;
    if (path)
        path[strcspn(path, ",")] = '\0';
    const char *const argv[] = {"munge", "-n", path ? "-S" : NULL, path, NULL};
    char *munge = dt_find_program("munge", NULL);
    if (runs(argv, &out))
        well("munged answers%s", answers ? ", and slurmctld accepts what it says" : "");
    else if (munge)
        bad(v,
            "start munged here (systemctl start munge); its key, /etc/munge/munge.key, must be "
            "that of all hosts",
            "munged does not answer: %.*s", (int)strcspn(out, "\n"), out);
    else
        note("install munge's commands to have that checked",
             "there is no program munge to ask munged with");
    free(munge);
    free(path);
    free(out);
}

/* ---- slurmctld ---- */

/* The first two numbers, which decide what plugins fit: "22.05". */
static bool same_release(const char *a, const char *b)
{
    size_t n = strcspn(a, "."), m;
    m = n + (a[n] ? 1 + strcspn(a + n + 1, ".") : 0);
    return strncmp(a, b, m) == 0 && (!b[m] || b[m] == '.');
}

static bool check_controller(struct visit *v)
{
    struct dt_error e = DT_ERROR_INIT;
    if (dt_site_read(&v->site, &e) < 0) {
        bad(v,
            "look whether slurmctld runs (scontrol ping), whether slurm.conf here is the "
            "cluster's, and at munge below",
            "slurmctld does not answer: %s", e.text);
        dt_error_clear(&e);
        return false;
    }
    const struct dt_site *s = &v->site;
    if (same_release(s->client, s->version))
        well("slurmctld answers; it is Slurm %s, as dt-tune was built for", s->version);
    else
        bad(v, "build dt-tune with the headers of the Slurm that runs, and install it on all hosts",
            "slurmctld is Slurm %s, and dt-tune was built for %s", s->version, s->client);
    if (s->up)
        well("%zu of %zu nodes may run jobs", s->up, s->nodes);
    else
        bad(v, "look at sinfo -R", "none of %zu nodes may run jobs", s->nodes);
    double apart = fmax(fmax(s->asked - 1 - s->now, s->now - s->answered), 0);
    if (apart <= CLOCK_S)
        well("the clock here is slurmctld's");
    else
        bad(v,
            "set the clocks of all hosts (chronyc tracking, timedatectl); munge refuses more "
            "than 300 s",
            "the clock here and slurmctld's are %.0f s apart: queue waits and run times will be "
            "wrong",
            apart);
    return true;
}

static void check_scheduler(struct visit *v)
{
    const struct dt_site *s = &v->site;
    if (strcmp(s->scheduler, "sched/backfill") == 0)
        well("backfill is on, so that heterogeneous jobs start");
    else
        bad(v,
            "SchedulerType=sched/backfill in slurm.conf, then restart slurmctld; else use "
            "--dt-layout=packed",
            "%s: layout het cannot be used, since only backfill starts heterogeneous jobs",
            s->scheduler);
    if (strcmp(s->accounting, "accounting_storage/slurmdbd") == 0)
        well("accounting is on: sacct shows the trials after their end");
    else
        note("AccountingStorageType=accounting_storage/slurmdbd gives sacct the trials; dt-tune "
             "needs it not",
             "no accounting: of trials that ended, the study's folder alone tells");
    if (s->min_job_age == 0 || s->min_job_age >= JOB_AGE_S)
        well("slurmctld remembers ended jobs for %u s", s->min_job_age);
    else
        bad(v, "MinJobAge=300 in slurm.conf (its default), then scontrol reconfigure",
            "slurmctld forgets ended jobs after %u s: a trial's end may be missed and count as "
            "lost",
            s->min_job_age);
}

/* Whether libslurm can read its configuration: where it cannot, it ends the program that asks. */
static bool check_configuration(struct visit *v)
{
    static const char *const argv[] = {"scontrol", "ping", NULL};
    char *out;
    bool fine = runs(argv, &out) || !strstr(out, "fatal:");
    if (!fine) {
        bad(v,
            "copy the cluster's slurm.conf to this host, or set SLURM_CONF to it; scontrol ping "
            "should answer",
            "Slurm's configuration cannot be read: %.*s", (int)strcspn(out, "\n"), out);
    }
    free(out);
    return fine;
}

/* ---- plugins ---- */

struct spank {
    char *path, *tune; /* of the plugin, and what it starts; NULL */
};

/* Reads plugstack.conf and what it includes. */
static void read_plugstack(const char *path, int depth, struct spank *found)
{
    char *text = depth < 8 ? dt_read_text(path, 1 << 20, NULL) : NULL;
    struct dt_strv lines = DT_STRV_INIT;
    dt_strv_split(&lines, text ? text : "", "\n");
    for (size_t i = 0; i < lines.n; i++) {
        struct dt_strv words = DT_STRV_INIT;
        glob_t files = {0};
        dt_strv_split(&words, lines.v[i], " \t\r");
        if (words.n > 1 && strcmp(words.v[0], "include") == 0 &&
            glob(words.v[1], 0, NULL, &files) == 0)
            for (size_t k = 0; k < files.gl_pathc; k++)
                read_plugstack(files.gl_pathv[k], depth + 1, found);
        globfree(&files);
        bool plugin = words.n > 1 &&
                      (strcmp(words.v[0], "optional") == 0 || strcmp(words.v[0], "required") == 0);
        if (plugin && !found->path && strstr(words.v[1], "spank_dt_tune.so")) {
            found->path = dt_xstrdup(words.v[1]);
            for (size_t k = 2; k < words.n; k++)
                if (dt_starts_with(words.v[k], "dt_tune="))
                    found->tune = dt_xstrdup(words.v[k] + strlen("dt_tune="));
        }
        dt_strv_free(&words);
    }
    dt_strv_free(&lines);
    free(text);
}

/* The first file of that name along Slurm's PluginDir, or NULL. Caller frees. */
static char *find_plugin(const struct visit *v, const char *name)
{
    struct dt_strv dirs = DT_STRV_INIT;
    char *file = NULL;
    dt_strv_split(&dirs, v->site.plugin_dir, ":");
    for (size_t i = 0; i < dirs.n && !file; i++) {
        file = dt_xasprintf("%s/%s", dirs.v[i], name);
        if (access(file, R_OK) < 0) {
            free(file);
            file = NULL;
        }
    }
    dt_strv_free(&dirs);
    return file;
}

/* A plugin's file: that it can be loaded, and is of the Slurm that runs. Slurm's own symbols need
 * not be there. */
static bool check_file(struct visit *v, const char *name, const char *path)
{
    char *full = path[0] == '/' ? dt_xstrdup(path) : find_plugin(v, path);
    if (!full) {
        bad(v, "install it in Slurm's PluginDir, or write its whole path", "%s is not in %s", path,
            v->site.plugin_dir);
        return false;
    }
    void *lib = dlopen(full, RTLD_LAZY | RTLD_LOCAL);
    const uint32_t *version = lib ? dlsym(lib, "plugin_version") : NULL;
    char *built = version ? dt_xasprintf("%02u.%02u", *version >> 16, *version >> 8 & 0xff) : NULL;
    bool fits = built && same_release(built, v->site.version);
    if (!lib)
        bad(v, "install it in Slurm's PluginDir, or write its whole path",
            "%s cannot be loaded: %s", name, dlerror());
    else if (!fits)
        bad(v, "build dt-tune with the headers of the Slurm that runs, and install it on all hosts",
            "%s is for Slurm %s, and Slurm is %s", full, built ? built : "of an unknown version",
            v->site.version);
    else
        well("%s is there, and for Slurm %s", full, built);
    if (lib)
        dlclose(lib);
    free(built);
    free(full);
    return fits;
}

/* That sbatch starts this very version. */
static void check_started(struct visit *v, const struct spank *s)
{
    const char *const argv[] = {s->tune ? s->tune : DT_BIN "/dt-tune", "--version", NULL};
    char *out, *ours = dt_xasprintf("dt-tune %s\n", DT_VERSION);
    bool same = runs(argv, &out) && strcmp(out, ours) == 0;
    if (same)
        well("sbatch starts %s, of this version", argv[0]);
    else
        bad(v,
            "install one version on all hosts, or write dt_tune=/path/of/dt-tune behind the "
            "plugin's name in plugstack.conf",
            "%s, which sbatch starts, is not of version %s: %.*s", argv[0], DT_VERSION,
            (int)strcspn(out, "\n"), out);
    free(out);
    free(ours);
}

static void check_spank(struct visit *v)
{
    static const char *const argv[] = {"sbatch", "--help", NULL};
    struct spank s = {0};
    char *out;
    /* slurmctld names it only where slurm.conf does */
    char *stack =
        *v->site.plugstack ? dt_xstrdup(v->site.plugstack) : dt_beside_slurm_conf("plugstack.conf");
    read_plugstack(stack, 0, &s);
    if (!s.path)
        bad(v,
            "add a line \"include /etc/slurm/plugstack.conf.d/*.conf\" to it and put "
            "dt-tune.conf into that folder, on "
            "every host; or use dt-sbatch, which needs no plugin",
            access(stack, R_OK) == 0 ? "%s does not name spank_dt_tune.so"
                                     : "%s, which would name spank_dt_tune.so, cannot be read",
            stack);
    else if (check_file(v, "spank_dt_tune.so", s.path))
        check_started(v, &s);
    if (s.path && runs(argv, &out)) {
        if (strstr(out, "--dt-tune"))
            well("sbatch knows --dt-tune");
        else
            bad(v, "look at what sbatch -vv says of spank; is it the sbatch of this cluster?",
                "sbatch does not know --dt-tune, though %s names the plugin", stack);
        free(out);
    }
    free(stack);
    free(s.path);
    free(s.tune);
}

static void check_job_submit(struct visit *v)
{
    struct dt_strv names = DT_STRV_INIT;
    bool named = false;
    dt_strv_split(&names, v->site.job_submit, ", ");
    for (size_t i = 0; i < names.n; i++)
        named = named || strcmp(names.v[i], "dt_tune") == 0;
    dt_strv_free(&names);
    if (!named) {
        bad(v,
            "JobSubmitPlugins=dt_tune in slurm.conf (behind others with a comma), then restart "
            "slurmctld; or use dt-sbatch",
            "slurmctld has no job_submit plugin dt_tune: sbatch --dt-tune would run the job "
            "untuned");
        return;
    }
    well("slurmctld has loaded job_submit/dt_tune");
    char *file = find_plugin(v, "job_submit_dt_tune.so");
    if (file)
        check_file(v, "job_submit_dt_tune.so", file);
    else
        note("look on slurmctld's host", "its file is not on this host");
    free(file);
}

/* ---- dt-tune.conf ---- */

static void check_conf(struct visit *v)
{
    struct dt_conf c = {0};
    struct dt_error e = DT_ERROR_INIT;
    char *path = dt_conf_path();
    if (access(path, F_OK) < 0)
        well("there is no %s: nothing is limited", path);
    else if (dt_conf_read(&c, &e) < 0)
        bad(v, "see dt-tune.conf(5); afterwards scontrol reconfigure", "%s", e.text);
    else if (c.refuse)
        note("take Refuse out of it, then scontrol reconfigure", "%s: Refuse=%s: nobody can tune",
             path, c.refuse);
    else
        well("%s can be read", path);
    dt_error_clear(&e);
    dt_conf_free(&c);
    free(path);
}

/* ---- folders ---- */

/* Names of file systems that one host has for itself; NULL: it may be shared. */
static const char *local_kind(const char *path)
{
    static const struct {
        unsigned long type;
        const char *name;
    } kinds[] = {{0xEF53, "ext4"},      {0x58465342, "xfs"},       {0x9123683E, "btrfs"},
                 {0x01021994, "tmpfs"}, {0x794c7630, "overlayfs"}, {0x2fc12fc1, "zfs"},
                 {0x858458f6, "ramfs"}};
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if ((unsigned long)fs.f_type == kinds[i].type)
            return kinds[i].name;
    return NULL;
}

/* The folder, or the nearest above it that exists. Caller frees. */
static char *existing(const char *path)
{
    char *dir = dt_xstrdup(path);
    while (access(dir, F_OK) < 0 && strchr(dir, '/') && dir[1]) {
        char *slash = strrchr(dir, '/');
        slash[slash == dir] = '\0';
    }
    return dir;
}

static void check_folder_of(struct visit *v, const char *what, const char *path)
{
    char *dir = existing(path);
    const char *kind = v->site.elsewhere ? local_kind(dir) : NULL;
    struct stat st;
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        bad(v, "name another folder", "%s, %s: %s is not a folder", what, path, dir);
    else if (access(dir, W_OK) < 0)
        bad(v, "use one of your own", "%s, %s, cannot be written: %s", what, path, strerror(errno));
    else if (kind)
        bad(v, "use a folder on a file system that all nodes share (see df -T)",
            "%s, %s, is on %s of this host, and %zu of %zu nodes are other hosts", what, path, kind,
            v->site.elsewhere, v->site.nodes);
    else
        well("%s, %s, can be written%s", what, path,
             v->site.elsewhere ? " and is not this host's alone" : "");
    free(dir);
}

static void check_folders(struct visit *v)
{
    char *cwd = getcwd(NULL, 0), *history = dt_history_dir();
    check_folder_of(v, "this folder", cwd ? cwd : ".");
    if (history)
        check_folder_of(v, "the history", history);
    else
        bad(v, "set DT_TUNE_HISTORY to a folder",
            "nobody knows where your home is, and so the history");
    free(cwd);
    free(history);
}

int cmd_doctor(int argc, char **argv)
{
    static const struct option options[] = {{"no-plugins", no_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct visit v = {0};
    bool plugins = true;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage_text, stdout);
            return EXIT_DONE;
        }
        if (c != 'p')
            return EXIT_USAGE;
        plugins = false;
    }
    if (optind != argc) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    check_programs(&v);
    bool answers = check_configuration(&v);
    if (answers) {
        slurm_init(NULL);
        answers = check_controller(&v);
    }
    check_munge(&v, answers);
    if (answers) {
        check_scheduler(&v);
        if (plugins) {
            check_spank(&v);
            check_job_submit(&v);
        }
    }
    check_conf(&v);
    check_folders(&v);
    if (v.bad)
        printf("\n%zu thing%s to mend\n", v.bad, v.bad == 1 ? "" : "s");
    else
        printf("\nall is well\n");
    dt_site_free(&v.site);
    return v.bad ? EXIT_WORK_FAILED : EXIT_DONE;
}
