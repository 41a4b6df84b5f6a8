/* The monitor: levels, their way through the journal, and what a trial keeps of them. */
#include "backend/slurm_private.h"
#include "monitor/monitor.h"
#include "report/report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

/* ---- levels ---- */

static struct dt_usage cpu(double t, int64_t n, double mean, double max)
{
    struct dt_usage u = dt_usage_unknown(t);
    u.n = n;
    u.mean[DT_RESOURCE_CPU] = mean;
    u.max[DT_RESOURCE_CPU] = max;
    return u;
}

static void sums_weigh_by_samples(void **state)
{
    struct dt_usage sum = {0}, a = cpu(10, 1, 0.5, 0.6), b = cpu(40, 3, 0.9, 1.0),
                    c = cpu(50, 4, NAN, NAN);
    int64_t known[DT_RESOURCES];
    (void)state;
    c.mean[DT_RESOURCE_MEM] = c.max[DT_RESOURCE_MEM] = 0.25;
    dt_usage_add(&sum, known, &a);
    dt_usage_add(&sum, known, &b);
    dt_usage_add(&sum, known, &c);
    assert_true(sum.n == 8 && sum.t == 50 && known[DT_RESOURCE_CPU] == 4 &&
                known[DT_RESOURCE_GPU] == 0);
    NEAR(sum.mean[DT_RESOURCE_CPU], 0.8);
    NEAR(sum.max[DT_RESOURCE_CPU], 1.0);
    NEAR(sum.mean[DT_RESOURCE_MEM], 0.25);
    assert_true(isnan(sum.mean[DT_RESOURCE_GPU]) && isnan(sum.max[DT_RESOURCE_GPU]));
}

static void odd_levels_are_unknown(void **state)
{
    static const char *const odd[] = {
        "{}",
        "{\"cpu\": 1}",
        "{\"cpu\": []}",
        "{\"cpu\": [0.5]}",
        "{\"cpu\": [0.5, \"1\"]}",
        "{\"cpu\": [null, 1]}",
        "{\"cpu\": [-0.1, 1]}",
        "{\"cpu\": [1e999, 1]}",
        "{\"cpus\": [0.5, 1]}",
        "[1]",
    };
    struct dt_usage u = dt_usage_unknown(0);
    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        struct json_object *o = dt_json_parse(odd[i], "levels", NULL);
        u.mean[DT_RESOURCE_CPU] = 1;
        dt_usage_from_json(o, &u);
        assert_true(isnan(u.mean[DT_RESOURCE_CPU]) && isnan(u.max[DT_RESOURCE_CPU]));
        json_object_put(o);
    }
    dt_usage_from_json(NULL, &u);
    assert_true(isnan(u.mean[DT_RESOURCE_CPU]));
}

/* ---- events ---- */

static struct dt_event usage_event(int run, const char *role, struct dt_usage u)
{
    struct dt_event ev = DT_EVENT(DT_EVENT_USAGE);
    ev.trial = 1;
    ev.run = run;
    ev.t = u.t;
    ev.text = dt_xstrdup(role);
    ev.usage = u;
    return ev;
}

static void events_go_through_json(void **state)
{
    struct dt_usage u = cpu(1764441600.125, 7, 0.1 + 0.2, 1);
    struct dt_event ev = usage_event(2, "ps", u), back;
    (void)state;
    ev.usage.mean[DT_RESOURCE_NET] = 1.25e9;
    ev.usage.max[DT_RESOURCE_NET] = 2e9;
    struct json_object *o = dt_event_to_json(&ev);
    assert_int_equal(dt_event_from_json(o, &back, NULL), 0);
    assert_true(back.kind == DT_EVENT_USAGE && back.trial == 1 && back.run == 2);
    assert_string_equal(back.text, "ps");
    assert_memory_equal(&back.usage.t, &ev.usage.t, sizeof(double));
    assert_true(back.usage.n == 7);
    for (int i = 0; i < DT_RESOURCES; i++) {
        double a = ev.usage.mean[i], b = back.usage.mean[i];
        assert_true((isnan(a) && isnan(b)) || a == b);
    }
    assert_true(back.usage.max[DT_RESOURCE_NET] == 2e9);
    json_object_put(o);
    dt_event_free(&ev);
    dt_event_free(&back);
}

static void an_event_names_its_role(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_event ev;
    struct json_object *o =
        dt_json_parse("{\"event\": \"usage\", \"trial\": 1, \"levels\": {}}", "r", NULL);
    (void)state;
    assert_int_equal(dt_event_from_json(o, &ev, &e), -1);
    assert_string_equal(e.text, "event \"usage\" without \"text\"");
    dt_error_clear(&e);
    json_object_put(o);
}

/* ---- what a trial keeps ---- */

struct fixture {
    struct dt_spec *spec;
    struct dt_space *space;
    struct dt_study *s, *replayed;
};

static struct dt_study *with_one_trial(const struct fixture *f)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_study *s = dt_study_new(f->spec, f->space, NULL, &e);
    struct dt_event ev = DT_EVENT(DT_EVENT_CREATED);
    ev.trial = 1;
    ev.config = dt_json_parse("{\"workers\": 2}", "c", &e);
    if (dt_study_apply(s, &ev, &e) < 0)
        fail_msg("%s", e.text);
    dt_event_free(&ev);
    return s;
}

static int begin(void **state)
{
    static const char text[] = "{\"dt\": {\"workers\": {\"low\": 1, \"high\": 4}}}";
    struct fixture *f = dt_xcalloc(1, sizeof(*f));
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    f->spec = dt_spec_parse(json, text, "S.json", &e);
    f->space = dt_space_new(f->spec->params, f->spec->nparams, &f->spec->constraints, NULL, 0, NULL,
                            NULL, NULL, 0, &e);
    f->s = with_one_trial(f);
    f->replayed = with_one_trial(f);
    json_object_put(json);
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    dt_study_free(f->s);
    dt_study_free(f->replayed);
    dt_space_free(f->space);
    dt_spec_free(f->spec);
    free(f);
    return 0;
}

/* To one study as it happens, to the other as its journal tells it. */
static void apply(struct fixture *f, struct dt_event ev)
{
    struct json_object *o = dt_event_to_json(&ev);
    char *text = dt_json_text(o);
    json_object_put(o);
    o = dt_json_parse(text, "record", NULL);
    assert_int_equal(dt_study_apply(f->s, &ev, NULL), 0);
    assert_int_equal(dt_study_apply_record(f->replayed, o, NULL), 0);
    json_object_put(o);
    free(text);
    dt_event_free(&ev);
}

/* What a run used as a whole; NULL where nothing is known. */
static const struct dt_usage *of_run(const struct dt_role_usage *r, int run)
{
    for (size_t i = 0; i < r->nruns; i++)
        if (r->runs[i].run == run)
            return &r->runs[i].u;
    return NULL;
}

static void a_trial_keeps_a_window_and_the_whole(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        if (i % 2)
            apply(f, usage_event(1, "worker", cpu(i, 2, 0.5, 0.5)));
        if (i >= 50)
            apply(f, usage_event(1, "ps", cpu(i, 1, i / 100.0, 1)));
    }
    for (int i = 0; i < 2; i++) {
        const struct dt_role_usages *all = &dt_study_trial(i ? f->s : f->replayed, 1)->usage;
        const struct dt_role_usage *ps = dt_role_usages_find(all, "ps");
        assert_true(all->n == 2 && ps == &all->v[0]); /* by name, whichever told first */
        assert_int_equal(ps->n, DT_USAGE_WINDOW);
        assert_true(ps->recent[0].t == 100 - DT_USAGE_WINDOW && ps->recent[ps->n - 1].t == 99);
        const struct dt_usage *whole = of_run(ps, 1);
        assert_true(whole->n == 50 && whole->t == 99);
        NEAR(whole->mean[DT_RESOURCE_CPU], 0.745);
        assert_true(of_run(dt_role_usages_find(all, "worker"), 1)->n == 100);
        assert_null(dt_role_usages_find(all, "chief"));
        assert_null(of_run(ps, 2));
    }
}

static void a_new_run_begins_anew_and_the_old_is_kept(void **state)
{
    struct fixture *f = *state;
    apply(f, usage_event(1, "ps", cpu(5, 1, 1, 1)));
    struct dt_event ended = DT_EVENT(DT_EVENT_ENDED);
    ended.trial = ended.run = 1;
    ended.cause = DT_CAUSE_NODE_FAILURE;
    apply(f, ended);
    const struct dt_trial *t = dt_study_trial(f->replayed, 1);
    const struct dt_role_usage *ps = dt_role_usages_find(&t->usage, "ps");
    assert_true(t->run == 2 && ps->n == 0);
    apply(f, usage_event(1, "ps", cpu(6, 1, 1, 1))); /* too late */
    assert_int_equal(ps->n, 0);
    apply(f, usage_event(2, "ps", cpu(9, 1, 0.25, 0.5)));
    assert_int_equal(ps->n, 1);
    NEAR(of_run(ps, 1)->mean[DT_RESOURCE_CPU], 1);
    NEAR(of_run(ps, 2)->mean[DT_RESOURCE_CPU], 0.25);
}

/* ---- /proc and /sys of a made-up machine ---- */

static char *root;

static int make_root(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    root = dt_xasprintf("%s/dt-test-monitor.XXXXXX", tmp ? tmp : P_tmpdir);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    int rc = nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(root);
    return rc;
}

/* Writes a file anew, or appends to it, with its folders. */
static void write_to(const char *name, const char *text, int flag)
{
    char *path = dt_xasprintf("%s/%s", root, name), *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(dt_mkdirs(path, NULL), 0);
    *slash = '/';
    int fd = open(path, O_WRONLY | O_CREAT | flag, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    free(path);
}

static void put(const char *name, const char *text)
{
    write_to(name, text, O_TRUNC);
}

static void gone(const char *name)
{
    char *path = dt_xasprintf("%s/%s", root, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* In clock ticks; the children's are those of the ones that were waited for. */
static void process(int pid, const char *name, int parent, int user, int system, int children)
{
    char *path = dt_xasprintf("proc/%d/stat", pid);
    char *text = dt_xasprintf("%d (%s) S %d 7 7 34816 7 4194560 911 0 0 0 %d %d %d 0 20 0 1 0 9120 "
                              "8413184 1300 18446744073709551615 1 1 0 0 0\n",
                              pid, name, parent, user, system, children);
    put(path, text);
    free(path);
    free(text);
}

static void memory(int pid, int own_kib, int shared_kib)
{
    char *path = dt_xasprintf("proc/%d/status", pid);
    char *text = dt_xasprintf("Name:\tx\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nRssFile:\t900 kB\n"
                              "RssShmem:\t%d kB\n",
                              own_kib + 900 + shared_kib, own_kib, shared_kib);
    put(path, text);
    free(path);
    free(text);
}

static void a_tree_is_all_descendants_whatever_their_names(void **state)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    struct dt_proc_tree t;
    (void)state;
    process(1, "init", 0, 5000, 0, 0);
    process(100, "dt-launch", 1, 9, 9, 9);
    process(310, "train.py", 100, 10, 2, 30);
    process(205, ") R 1 (", 310, 100, 0, 0);
    process(206, "a b\nc", 205, 1000, 0, 0); /* a descendant of a higher number */
    process(207, "(sd-pam)", 1, 10000, 0, 0);
    put("proc/208/stat", "208 (torn");
    put("proc/self", "no number");
    memory(310, 1000, 600);
    memory(205, 200, 500);
    put("proc/310/io", "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 100\n");
    put("proc/205/io", "read_bytes: 0\nwrite_bytes: 4\n");
    put("proc/206/io", "read_bytes: 0\nwrite_bytes: 0\n");
    dt_proc_tree_read(root, 310, &t);
    assert_int_equal(t.n, 3);
    NEAR(t.cpu_s, 1142 * tick);
    NEAR(t.mem, 1024 * 1800.0); /* 206 is ending, and has none */
    NEAR(t.io, 4200);
    gone("proc/205/io"); /* not allowed, or vanished in between */
    dt_proc_tree_read(root, 310, &t);
    assert_true(t.n == 3 && isnan(t.io));
    gone("proc/310/status");
    gone("proc/205/status");
    dt_proc_tree_read(root, 310, &t);
    assert_true(t.n == 3 &&
                isnan(t.mem)); /* that all are ending does not mean that they needed none */
    gone("proc/310/stat");
    dt_proc_tree_read(root, 310, &t);
    assert_true(t.n == 0 && isnan(t.cpu_s) && isnan(t.mem));
    dt_proc_tree_read(root, 999, &t);
    assert_int_equal(t.n, 0);
}

static void the_node_has_memory_and_interfaces(void **state)
{
    (void)state;
    assert_true(isnan(dt_node_mem_left(root)) && isnan(dt_node_net(root)));
    put("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:   4000 kB\n");
    put("proc/net/dev", "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
                        "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
                        "veth:1: 50 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
    NEAR(dt_node_mem_left(root), 4096000);
    NEAR(dt_node_net(root), 55); /* only virtual ones */
    put("proc/net/dev", "veth1: 50 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
                        "  eth0:1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
                        "  ib0:7000 1 0 0 0 0 0 0 7000 1 0 0 0 0 0 0\n");
    put("sys/class/net/eth0/device/vendor", "0x1");
    put("sys/class/net/ib0/device/vendor", "0x1");
    put("sys/class/net/ib0/type", "32\n");
    NEAR(dt_node_net(root), 15200);
    put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "10000\n");
    put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1\n");
    NEAR(dt_node_net(root), 1200 + 40004);
}

#define CG "sys/fs/cgroup/"
#define JOB2 CG "system.slice/slurmstepd.scope/job_7/"

static void control_groups_of_version_2(void **state)
{
    struct dt_cgroup g;
    (void)state;
    put(CG "cgroup.controllers", "cpuset cpu io memory\n");
    put("proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_1\n");
    put(JOB2 "step_0/user/task_1/cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
    put(JOB2 "step_0/user/memory.current", "1000\n"); /* not told by the task's own */
    put(JOB2 "step_0/user/memory.stat", "anon 500\nactive_file 100\ninactive_file 250\n");
    put(JOB2 "step_0/user/memory.max", "max\n");
    put(JOB2 "step_0/memory.current", "1100\n");
    put(JOB2 "step_0/memory.max", "4000\n");
    put(JOB2 "memory.current", "2500\n");
    put(JOB2 "memory.stat", "inactive_file 500\nactive_file 0\n");
    put(JOB2 "memory.max", "3000\n");
    put(JOB2 "step_0/user/task_1/cpu.max", "max 100000\n");
    put(JOB2 "cpu.max", "250000 100000\n");
    dt_cgroup_find(&g, root, false);
    assert_true(g.v2 && g.own_cpu && !g.own_mem);
    NEAR(dt_cgroup_cpu_s(&g), 2.5);
    NEAR(dt_cgroup_mem(&g), 650);
    NEAR(dt_cgroup_mem_left(&g), 1000); /* the job's */
    NEAR(dt_cgroup_cpus(&g), 2.5);
    dt_cgroup_free(&g);
    dt_cgroup_find(&g, root, true);
    assert_true(g.own_mem);
    gone(JOB2 "memory.current"); /* the job is ending */
    NEAR(dt_cgroup_mem_left(&g), 2900);
    dt_cgroup_free(&g);
}

static void control_groups_of_version_1(void **state)
{
    struct dt_cgroup g;
    (void)state;
    put("proc/self/cgroup", "12:cpuacct,cpu:/slurm/uid_5/job_7/step_0/task_2\n"
                            "4:memory:/slurm/uid_5/job_7/step_0\n1:name=systemd:/x\n0::/\n");
    put(CG "cpuacct/slurm/uid_5/job_7/step_0/task_2/cpuacct.usage", "1500000000\n");
    put(CG "cpu/slurm/uid_5/job_7/step_0/task_2/cpu.cfs_quota_us", "-1\n");
    put(CG "cpu/slurm/cpu.cfs_quota_us", "400000\n");
    put(CG "cpu/slurm/cpu.cfs_period_us", "100000\n");
    put(CG "memory/slurm/uid_5/job_7/step_0/memory.usage_in_bytes", "900\n");
    put(CG "memory/slurm/uid_5/job_7/step_0/memory.stat",
        "active_file 7\ntotal_active_file 100\ntotal_inactive_file 200\n");
    put(CG "memory/slurm/uid_5/job_7/step_0/memory.limit_in_bytes", "1000\n");
    put(CG "memory/slurm/uid_5/job_7/memory.limit_in_bytes", "9223372036854771712\n");
    dt_cgroup_find(&g, root, false);
    assert_true(!g.v2 && g.own_cpu && !g.own_mem);
    NEAR(dt_cgroup_cpu_s(&g), 1.5);
    NEAR(dt_cgroup_mem(&g), 600);
    NEAR(dt_cgroup_mem_left(&g), 400);
    NEAR(dt_cgroup_cpus(&g), 4);
    dt_cgroup_free(&g);
    put("proc/self/cgroup", "4:memory:/\n0::/\n"); /* in a container: all is at the top */
    put(CG "memory/memory.usage_in_bytes", "70\n");
    dt_cgroup_find(&g, root, true);
    assert_true(!g.own_cpu && !g.own_mem && isnan(dt_cgroup_cpu_s(&g)) &&
                isinf(dt_cgroup_cpus(&g)));
    NEAR(dt_cgroup_mem(&g), 70);
    assert_true(isnan(dt_cgroup_mem_left(&g)));
    dt_cgroup_free(&g);
}

static void without_control_groups_nothing_is_known(void **state)
{
    struct dt_cgroup g;
    (void)state;
    dt_cgroup_find(&g, root, true);
    assert_true(isnan(dt_cgroup_cpu_s(&g)) && isnan(dt_cgroup_mem(&g)) &&
                isnan(dt_cgroup_mem_left(&g)) && isinf(dt_cgroup_cpus(&g)));
    dt_cgroup_free(&g);
}

static void gpus_are_those_that_are_visible(void **state)
{
    static const char *const none[] = {NULL, "", "NoDevFiles", "7", "-1"};
    (void)state;
    if (access(FAKE_NVML, R_OK) < 0)
        skip();
    for (size_t i = 0; i < COUNT(none); i++)
        assert_null(dt_gpus_open(FAKE_NVML, none[i]));
    assert_null(dt_gpus_open("libdt-is-not-there.so.1", "0"));
    assert_null(dt_gpus_open("libm.so.6", "0")); /* some other library */
    struct dt_gpus *g = dt_gpus_open(FAKE_NVML, "0");
    NEAR(dt_gpus_busy(g), 0.045);
    NEAR(dt_gpus_busy(g), 0.145); /* none counts twice */
    dt_gpus_close(g);
    g = dt_gpus_open(FAKE_NVML, "GPU-zero,1,2");
    NEAR(dt_gpus_busy(g), (0.045 + 0.4) / 2);
    dt_gpus_close(g);
    g = dt_gpus_open(FAKE_NVML, "2");
    assert_true(isnan(dt_gpus_busy(g)));
    dt_gpus_close(g);
}

/* ---- samples ---- */

static void levels_are_between_two_looks(void **state)
{
    struct dt_counters
        a = {.t = 10, .cpu_s = 4, .net = 100, .io = 50, .mem = 1, .mem_left = 2},
        b = {.t = 20, .cpu_s = 9, .net = 90, .io = 250, .mem = 30, .mem_left = 90, .gpu = 0.5};
    struct dt_task_limits limits = {2, 100};
    double x[DT_RESOURCES];
    (void)state;
    dt_levels(&a, &b, &limits, x);
    NEAR(x[DT_RESOURCE_CPU], 0.25);
    NEAR(x[DT_RESOURCE_MEM], 0.3); /* what it asked for is less than what is left */
    NEAR(x[DT_RESOURCE_GPU], 0.5);
    NEAR(x[DT_RESOURCE_DISK], 20);
    assert_true(isnan(x[DT_RESOURCE_NET])); /* went back */
    limits = (struct dt_task_limits){0.25, NAN};
    dt_levels(&a, &b, &limits, x);
    NEAR(x[DT_RESOURCE_CPU], 1);
    NEAR(x[DT_RESOURCE_MEM], 0.25);
    limits.cpus = INFINITY; /* not known */
    dt_levels(&a, &b, &limits, x);
    assert_true(isnan(x[DT_RESOURCE_CPU]));
    limits.mem = 20; /* more than it asked for, where nobody enforces it */
    dt_levels(&a, &b, &limits, x);
    NEAR(x[DT_RESOURCE_MEM], 1);
    b.cpu_s = b.mem = b.gpu = NAN;
    dt_levels(&a, &b, &limits, x);
    assert_true(isnan(x[DT_RESOURCE_CPU]) && isnan(x[DT_RESOURCE_MEM]) &&
                isnan(x[DT_RESOURCE_GPU]));
    char *line = dt_sample_line("ps", 3, 12.34567, x);
    assert_string_equal(line, "{\"role\":\"ps\",\"rank\":3,\"time\":12.345,\"disk\":20}\n");
    free(line);
}

/* ---- gathering ---- */

static void say(struct dt_gather *g, const char *role, double t, double level)
{
    double x[DT_RESOURCES] = {level, NAN, NAN, NAN, NAN};
    char *line = dt_sample_line(role, 0, t, x);
    assert_true(dt_gather_line(g, line, t));
    free(line);
}

/* What is told by then, as "ps 20#1 0.5/0.6" a sample, into `text` (freed first). */
static const char *told(struct dt_gather *g, double now, bool all, char **text)
{
    struct dt_told *v;
    struct dt_buf b = DT_BUF_INIT;
    size_t n = dt_gather_tell(g, now, all, &v);
    for (size_t i = 0; i < n; i++)
        dt_buf_addf(&b, "%s%s %g#%d %g/%g", i ? ", " : "", v[i].role, v[i].u.t, (int)v[i].u.n,
                    v[i].u.mean[DT_RESOURCE_CPU], v[i].u.max[DT_RESOURCE_CPU]);
    free(v);
    free(*text);
    return *text = dt_buf_take(&b);
}

static void tasks_of_a_period_are_one_sample(void **state)
{
    struct dt_gather *g = dt_gather_new(10, 1000);
    char *text = NULL;
    (void)state;
    say(g, "ps", 1001, 0.2);
    say(g, "worker", 1009, 0.5);
    say(g, "worker", 1002, 1);
    assert_string_equal(told(g, 1014.9, false, &text), "");
    say(g, "worker", 1011, 0.1); /* the next period, before the last is told */
    assert_string_equal(told(g, 1015, false, &text), "ps 1010#1 0.2/0.2, worker 1010#1 0.75/1");
    say(g, "worker", 1003, 1); /* too late */
    assert_string_equal(told(g, 1025, false, &text), "worker 1020#1 0.1/0.1");
    assert_string_equal(told(g, 1099, true, &text), "");
    free(text);
    dt_gather_free(g);
}

static void odd_lines_are_passed_over(void **state)
{
    static const char *const odd[] = {
        "",
        "x",
        "[1]",
        "{}",
        "{\"role\":\"ps\"}",
        "{\"time\":1005}",
        "{\"role\":7,\"time\":1005}",
        "{\"role\":\"p s\",\"time\":1005}",
        "{\"role\":\"\",\"time\":1005}",
        "{\"role\":\"ps\",\"time\":1e300}",
        "{\"role\":\"ps\",\"time\":NaN}",
    };
    static const char *const elsewhen[] = {
        "{\"role\":\"ps\",\"time\":1021,\"cpu\":1}", /* in the future */
        "{\"role\":\"ps\",\"time\":-1e11,\"cpu\":1}",
    };
    struct dt_gather *g = dt_gather_new(10, 1000);
    char *text = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++)
        assert_false(dt_gather_line(g, odd[i], 1005));
    for (size_t i = 0; i < COUNT(elsewhen); i++)
        assert_true(dt_gather_line(g, elsewhen[i], 1005));
    assert_string_equal(told(g, 1005, true, &text), "");
    assert_true(dt_gather_line(g, "{\"role\":\"ps\",\"time\":1005,\"cpu\":\"1\"}", 1005));
    assert_true(dt_gather_line(g, "{\"role\":\"ps\",\"time\":1005,\"cpu\":-1}", 1005));
    assert_string_equal(told(g, 1005, true, &text), "ps 1005#1 nan/nan");
    for (int i = 0; i < 20; i++) { /* no more than so many roles */
        char *line = dt_xasprintf("{\"role\":\"r%d\",\"time\":1015}", i);
        assert_true(dt_gather_line(g, line, 1015) == (i < DT_ROLES_MAX - 1));
        free(line);
    }
    free(text);
    dt_gather_free(g);
}

static void what_stays_the_same_is_told_less_and_less(void **state)
{
    struct dt_gather *g = dt_gather_new(10, 1000);
    char *text = NULL;
    double level[] = {0.9, 0.92, 0.88, 0.9, 0.9, 0.9, 0.91, 0.89, 0.9};
    (void)state;
    for (int i = 0; i < 9; i++)
        say(g, "ps", 1005 + 10 * i, level[i]);
    assert_string_equal(told(g, 1200, false, &text),
                        "ps 1010#1 0.9/0.9, ps 1020#1 0.92/0.92, ps 1030#1 0.88/0.88, "
                        "ps 1050#2 0.9/0.9, ps 1080#3 0.9/0.91");
    say(g, "ps", 1205, 0.2); /* what was before a change is told by itself */
    say(g, "ps", 1215, 0.2);
    assert_string_equal(told(g, 1300, false, &text), "ps 1090#1 0.9/0.9, ps 1220#2 0.2/0.2");
    free(text);
    dt_gather_free(g);
}

/* A week of samples every 10 s, restless or steady: how many events; their sum is that of the
 * samples. */
static size_t events_of_a_week(bool restless)
{
    struct dt_gather *g = dt_gather_new(10, 0);
    struct dt_usage sum = {0};
    int64_t known[DT_RESOURCES], samples = 7 * 24 * 360;
    size_t events = 0;
    unsigned dice = 1;
    double level = 0, total = 0;
    for (int64_t i = 0; i < samples; i++) {
        level = restless ? rand_r(&dice) % 1000 / 1000.0 : 0.5;
        total += level;
        say(g, "ps", 10 * (double)i + 5, level);
        struct dt_told *v;
        size_t n = dt_gather_tell(g, 10 * (double)i + 15, i == samples - 1, &v);
        for (size_t k = 0; k < n; k++)
            dt_usage_add(&sum, known, &v[k].u);
        events += n;
        free(v);
    }
    assert_true(sum.n == samples);
    assert_true(fabs(sum.mean[DT_RESOURCE_CPU] - total / (double)samples) < 1e-4);
    dt_gather_free(g);
    return events;
}

static void the_journal_grows_with_the_logarithm_of_time(void **state)
{
    (void)state;
    size_t steady = events_of_a_week(false), restless = events_of_a_week(true);
    print_message("# a week at 10 s: %zu events of a steady role, %zu of a restless one\n", steady,
                  restless);
    assert_true(steady >= 10 && steady <= 40);
    assert_true(restless >= 200 && restless <= 800);
}

/* ---- what Slurm gathers ---- */

static struct dt_step_stat stat_of(const char *line)
{
    struct dt_step_stat s = {0};
    if (!dt_step_stat_parse(line, &s))
        fail_msg("no step: %s", line);
    return s;
}

static void lines_of_sstat_are_read(void **state)
{
    static const char *const none[] = {"", "JobID|NTasks", "7.0||cpu=00:00:01|||", "7.0|0||||",
                                       "|2||||"};
    struct dt_step_stat s =
        stat_of("7.batch|2|cpu=1-02:03:04,energy=0,fs/disk=1000,ic/ofed=5,mem=10M,pages=0,vmem=9K|"
                "cpu=00:00:07,fs/disk=600,mem=1536K|fs/disk=24,ic/ofed=7|fs/disk=20");
    (void)state;
    assert_string_equal(s.step, "7.batch");
    assert_true(s.tasks == 2 && s.all.cpu_s == 93784 && s.all.mem == 10 << 20);
    assert_true(s.all.io == 1024 && s.all.net == 12);
    assert_true(s.most.cpu_s == 7 && s.most.mem == 1536 * 1024 && s.most.io == 620);
    assert_true(isnan(s.most.net));
    free(s.step);
    s = stat_of("7.1|1|cpu=01:02.500,mem=2048|x|y|z"); /* as some versions write it */
    assert_true(s.all.cpu_s == 62.5 && s.all.mem == 2048 && isnan(s.all.io));
    assert_true(isnan(s.most.cpu_s) && isnan(s.most.mem));
    free(s.step);
    for (size_t i = 0; i < COUNT(none); i++)
        assert_false(dt_step_stat_parse(none[i], &s));
}

static void levels_are_between_two_answers(void **state)
{
    struct dt_task_limits limits = {.cpus = 2, .mem = 100 << 20};
    double mean[DT_RESOURCES], max[DT_RESOURCES];
    struct dt_step_stat a = stat_of("7.0|2|cpu=00:00:10,fs/disk=0,mem=80M|cpu=00:00:06,mem=50M||"),
                        b = stat_of("7.0|2|cpu=00:01:10,fs/disk=6000,mem=120M|"
                                    "cpu=00:00:51,mem=90M|fs/disk=0|");
    (void)state;
    dt_step_levels(&a, &b, 30, &limits, mean, max);
    assert_true(mean[DT_RESOURCE_CPU] == 0.5 && max[DT_RESOURCE_CPU] == 0.75);
    assert_true(fabs(mean[DT_RESOURCE_MEM] - 0.6) < 1e-9 &&
                fabs(max[DT_RESOURCE_MEM] - 0.9) < 1e-9);
    assert_true(mean[DT_RESOURCE_DISK] == 100 && max[DT_RESOURCE_DISK] == 100);
    assert_true(isnan(mean[DT_RESOURCE_NET]) && isnan(max[DT_RESOURCE_GPU]));
    dt_step_levels(&b, &a, 30, &limits, mean, max); /* counters that went back */
    assert_true(isnan(mean[DT_RESOURCE_CPU]) && isnan(max[DT_RESOURCE_CPU]));
    free(a.step);
    free(b.step);
}

static void many_tasks_at_once_count_as_many(void **state)
{
    struct dt_gather *g = dt_gather_new(10, 1000);
    double mean[] = {0.5, NAN, NAN, NAN, NAN}, max[] = {0.9, NAN, NAN, NAN, NAN};
    char *text = NULL;
    (void)state;
    assert_true(dt_gather_take(g, "ps", 1005, 1005, mean, max, 3));
    say(g, "ps", 1006, 0.1);
    assert_string_equal(told(g, 1020, true, &text), "ps 1010#1 0.4/0.9");
    free(text);
    dt_gather_free(g);
}

/* ---- the feed of a trial ---- */

static struct dt_usage_feed *feed_of(const struct dt_study *s)
{
    return dt_usage_feed_new(root, 1000, dt_study_trial(s, 1), NULL, false);
}

static void line_to(const char *name, int period, double level)
{
    double x[DT_RESOURCES] = {level, 0.5, NAN, NAN, NAN};
    char *line = dt_sample_line("ps", 0, 1000 * period + 500, x);
    write_to(name, line, O_APPEND);
    free(line);
}

/* Takes what the feed tells into the studies; how many samples that was. */
static int64_t take(struct fixture *f, struct dt_usage_feed *feed, bool to_end)
{
    struct dt_event *events = NULL;
    size_t n = 0;
    int64_t samples = 0;
    dt_usage_feed_read(feed, dt_study_trial(f->s, 1), to_end, &events, &n);
    for (size_t i = 0; i < n; i++) {
        assert_true(events[i].kind == DT_EVENT_USAGE && events[i].trial == 1 && events[i].run == 1);
        samples += events[i].usage.n;
        apply(f, events[i]);
    }
    free(events);
    return samples;
}

static int begin_in_root(void **state)
{
    return make_root(state) == 0 ? begin(state) : -1;
}

static int end_in_root(void **state)
{
    end(state);
    return remove_root(state);
}

static void a_restarted_tuner_counts_nothing_twice(void **state)
{
    struct fixture *f = *state;
    int now = (int)(dt_now() / 1000);
    struct dt_usage_feed *feed = feed_of(f->s);
    assert_int_equal(take(f, feed, false), 0); /* no folder yet, or nothing in it */
    for (int i = -9; i < -2; i++) {
        line_to("n1.jsonl", now + i, 0.5);
        line_to("n2.jsonl", now + i, i % 2 ? 0.6 : 0.4);
    }
    write_to("n1.jsonl", "{\"role\":\"ps\",\"rank\":0,\"ti", O_APPEND); /* not whole yet */
    dt_usage_feed_free(feed);
    feed = feed_of(f->s);
    int64_t first = take(f, feed, false);
    assert_true(first >= 5 && first <= 7); /* some may wait to be told */
    write_to("n1.jsonl", "me\":1,\"cpu\":1}\n", O_APPEND);
    dt_usage_feed_free(feed);
    feed = feed_of(f->replayed); /* what the journal knows */
    line_to("n1.jsonl", now - 2, 0.1);
    assert_int_equal(first + take(f, feed, true), 8);
    assert_int_equal(take(f, feed, true), 0);
    const struct dt_usage *u =
        of_run(dt_role_usages_find(&dt_study_trial(f->s, 1)->usage, "ps"), 1);
    assert_true(u->n == 8);
    assert_true(fabs(u->mean[DT_RESOURCE_MEM] - 0.5) < 1e-4);
    dt_usage_feed_free(feed);
}

static void a_flood_of_lines_is_read_in_bounded_time(void **state)
{
    struct fixture *f = *state;
    struct dt_usage_feed *feed = feed_of(f->s);
    int now = (int)(dt_now() / 1000);
    char *noise = dt_xcalloc(1, 1024 * 1024);
    memset(noise, 'x', 1024 * 1024 - 1);
    for (int i = 0; i < 24; i++) {
        if (i % 2)
            noise[70 * i] = '\n';
        write_to("n1.jsonl", noise, O_APPEND);
    }
    free(noise);
    write_to("n1.jsonl", "\n", O_APPEND);
    line_to("n1.jsonl", now, 0.5);
    put("README", "{\"role\":\"other\",\"time\":1}\n");
    double begun = dt_monotonic();
    assert_int_equal(take(f, feed, true), 1);
    print_message("# one look at a flood: %.1f ms\n", 1000 * (dt_monotonic() - begun));
    assert_int_equal(dt_study_trial(f->s, 1)->usage.n, 1);
    dt_usage_feed_free(feed);
}

/* ---- report ---- */

static char *report_of(const struct dt_study *s)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    dt_report_usage(out, s);
    fclose(out);
    return text;
}

static void the_report_tells_of_the_best_and_gives_plain_hints(void **state)
{
    struct fixture *f = *state;
    char *text = report_of(f->s);
    assert_string_equal(text, "");
    free(text);
    struct dt_usage ps = cpu(5, 4, 0.97, 1), worker = cpu(5, 4, 0.25, 0.5);
    worker.mean[DT_RESOURCE_MEM] = 0.5;
    worker.max[DT_RESOURCE_MEM] = 0.95;
    worker.mean[DT_RESOURCE_GPU] = worker.max[DT_RESOURCE_GPU] = 0.75;
    apply(f, usage_event(1, "ps", ps));
    apply(f, usage_event(1, "worker", worker));
    struct dt_event ended = DT_EVENT(DT_EVENT_ENDED);
    ended.trial = ended.run = 1;
    ended.run_s = 100;
    apply(f, ended);
    text = report_of(f->replayed);
    assert_non_null(strstr(text, "trial 1 (the best)       ps         CPU  97 % (100 %)\n"));
    assert_non_null(
        strstr(text, "worker     CPU  25 % ( 50 %)  memory  50 % ( 95 %)  GPU  75 % ( 75 %)\n"));
    assert_non_null(strstr(text, "the servers' CPUs are busy while the workers wait"));
    assert_non_null(strstr(text, "the memory of a worker was full to 95 %"));
    assert_null(strstr(text, "the GPUs of"));
    free(text);
    struct json_object *o = dt_report_usage_json(dt_study_trial(f->replayed, 1));
    text = dt_json_text(o);
    assert_string_equal(text,
                        "{\"ps\":{\"cpu\":[0.97,1],\"samples\":4},\"worker\":{\"cpu\":[0.25,0.5],"
                        "\"mem\":[0.5,0.95],\"gpu\":[0.75,0.75],\"samples\":4}}");
    json_object_put(o);
    free(text);
}

/* ---- SPEC ---- */

/* The period, or the message. Caller frees. */
static char *period_of(const char *monitor)
{
    struct dt_error e = DT_ERROR_INIT;
    char *text = dt_xasprintf("{\"dt\": {\"workers\": [1, 2]}%s%s}",
                              *monitor ? ", \"monitor\": " : "", monitor);
    struct json_object *json = dt_json_parse(text, "S.json", &e);
    struct dt_spec *spec = dt_spec_parse(json, text, "S.json", &e);
    char *result = spec ? dt_xasprintf("%g", spec->monitor_period) : dt_xstrdup(e.text);
    dt_spec_free(spec);
    dt_error_clear(&e);
    json_object_put(json);
    free(text);
    return result;
}

static void spec_sets_the_period_or_switches_it_off(void **state)
{
    static const struct {
        const char *monitor, *result;
    } cases[] = {
        {"", "10"},
        {"true", "10"},
        {"{}", "10"},
        {"false", "0"},
        {"{\"period_s\": 0.5}", "0.5"},
        {"{\"period\": 1}", "S.json:1: monitor.period: unknown key; did you mean \"period_s\"?"},
        {"{\"source\": \"slurm\"}", "10"},
        {"{\"source\": \"sacct\"}",
         "S.json:1: monitor.source: \"sacct\" is not a source; there are auto, agent and slurm"},
        {"30", "S.json:1: monitor: false or an object like {\"period_s\": 10} is needed here, this "
               "is a number"},
        {"{\"period_s\": \"10\"}",
         "S.json:1: monitor.period_s: a number of seconds is needed here, this is a string"},
        {"{\"period_s\": 0}",
         "S.json:1: monitor.period_s: seconds between 0.1 and 3600 are needed here; to switch the "
         "monitor off, write \"monitor\": false"},
        {"{\"period_s\": 1e999}", "S.json:1: monitor.period_s: a finite number is needed here"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *result = period_of(cases[i].monitor);
        assert_string_equal(result, cases[i].result);
        free(result);
    }
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_weigh_by_samples),
        cmocka_unit_test(odd_levels_are_unknown),
        cmocka_unit_test(events_go_through_json),
        cmocka_unit_test(an_event_names_its_role),
        cmocka_unit_test_setup_teardown(a_trial_keeps_a_window_and_the_whole, begin, end),
        cmocka_unit_test_setup_teardown(a_new_run_begins_anew_and_the_old_is_kept, begin, end),
        IN_ROOT(a_tree_is_all_descendants_whatever_their_names),
        IN_ROOT(the_node_has_memory_and_interfaces),
        IN_ROOT(control_groups_of_version_2),
        IN_ROOT(control_groups_of_version_1),
        IN_ROOT(without_control_groups_nothing_is_known),
        cmocka_unit_test(gpus_are_those_that_are_visible),
        cmocka_unit_test(levels_are_between_two_looks),
        cmocka_unit_test(tasks_of_a_period_are_one_sample),
        cmocka_unit_test(odd_lines_are_passed_over),
        cmocka_unit_test(what_stays_the_same_is_told_less_and_less),
        cmocka_unit_test(the_journal_grows_with_the_logarithm_of_time),
        cmocka_unit_test(lines_of_sstat_are_read),
        cmocka_unit_test(levels_are_between_two_answers),
        cmocka_unit_test(many_tasks_at_once_count_as_many),
        cmocka_unit_test_setup_teardown(a_restarted_tuner_counts_nothing_twice, begin_in_root,
                                        end_in_root),
        cmocka_unit_test_setup_teardown(a_flood_of_lines_is_read_in_bounded_time, begin_in_root,
                                        end_in_root),
        cmocka_unit_test_setup_teardown(the_report_tells_of_the_best_and_gives_plain_hints, begin,
                                        end),
        cmocka_unit_test(spec_sets_the_period_or_switches_it_off),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
