/* topology: real machines as hwloc has seen them. What is expected was worked out by hand from
 * lstopo-no-graphics -i FILE, not by this program. */
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static char *path_of(const char *name)
{
    const char *src = getenv("srcdir");
    return dt_xasprintf("%s/tests/data/hwloc/%s.xml", src ? src : ".", name);
}

static struct dt_topology *read_machine(const char *name)
{
    struct dt_error e = DT_ERROR_INIT;
    char *path = path_of(name);
    struct dt_topology *t = dt_topology_read(path, &e);
    if (!t)
        fail_msg("%s", e.text);
    free(path);
    return t;
}

/* ---- what is there ---- */

struct machine {
    const char *name;
    size_t packages, numas, cores, pus, gpus, nics, groups;
    const char *nic; /* for servers */
    size_t nic_numa;
    struct dt_budget budgets[DT_BUDGETS];
};

static const struct machine machines[] = {
    {"16em64t-4s2c2t-offlines", 4, 1, 6, 7, 0, 0, 0, NULL, 0, {{0, 1, 4, 0}, {0, 7, 1, 0}}},
    {"192em64t-24n8c2t",
     24,
     24,
     192,
     384,
     0,
     7,
     0,
     "mlx4_0",
     6,
     {{0, 16, 24, 31727}, {0, 384, 1, 761458}}},
    {"28intel64-2p2g7c-CoDgroups.v1tov2",
     2,
     4,
     28,
     28,
     0,
     2,
     0,
     "enp6s0",
     0,
     {{0, 7, 4, 16317}, {0, 14, 2, 32634}, {0, 28, 1, 65268}}},
    {"32em64t-2n8c2t-pci-normalio", 2, 2, 16, 32, 4, 3, 2, "mlx5_0", 1, {{1, 4, 4, 10922}}},
    {"96em64t-4n4d3ca2co-pci",
     16,
     4,
     96,
     96,
     0,
     8,
     0,
     "eth0",
     0,
     {{0, 6, 16, 12223}, {0, 24, 4, 48895}, {0, 96, 1, 195582}}},
    {"devel09-pci", 2, 2, 4, 4, 0, 3, 0, "ib0", 0, {{0, 2, 2, 12282}, {0, 4, 1, 24565}}},
    {"memorysidecaches",
     2,
     4,
     40,
     80,
     0,
     0,
     0,
     NULL,
     0,
     {{0, 20, 4, 380610}, {0, 40, 2, 761221}, {0, 80, 1, 1522443}}},
    /* the file shows two cores of each processor only */
    {"nvidiaDGX2", 2, 2, 4, 4, 16, 0, 2, NULL, 0, {{1, 1, 4, 96587}, {8, 2, 2, 772699}}},
    {"power8gpudistances", 2, 2, 8, 16, 4, 0, 2, NULL, 0, {{1, 4, 4, 32639}, {2, 8, 2, 65279}}},
};

static void test_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(machines); i++) {
        const struct machine *m = &machines[i];
        struct dt_topology *t = read_machine(m->name);
        size_t *group = dt_xcalloc(t->ngpus, sizeof(*group));
        print_message("# %s\n", m->name);
        assert_int_equal(t->npackages, m->packages);
        assert_int_equal(t->nnumas, m->numas);
        assert_int_equal(t->ncores, m->cores);
        assert_int_equal(dt_topology_pus(t), m->pus);
        assert_int_equal(t->ngpus, m->gpus);
        assert_int_equal(t->nnics, m->nics);
        assert_int_equal(dt_topology_groups(t, group), m->groups);
        const struct dt_device *nic = dt_topology_nic(t);
        assert_int_equal(nic != NULL, m->nic != NULL);
        if (nic) {
            assert_string_equal(nic->name, m->nic);
            assert_int_equal(nic->numa, m->nic_numa);
        }
        free(group);
        dt_topology_free(t);
    }
}

static void test_budgets(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(machines); i++) {
        const struct machine *m = &machines[i];
        struct dt_topology *t = read_machine(m->name);
        struct dt_budget b[DT_BUDGETS];
        size_t n = dt_topology_budgets(t, b);
        print_message("# %s\n", m->name);
        for (size_t k = 0; k < DT_BUDGETS; k++) {
            if (!m->budgets[k].workers) {
                assert_int_equal(n, k);
                break;
            }
            assert_true(k < n);
            assert_int_equal(b[k].gpus, m->budgets[k].gpus);
            assert_int_equal(b[k].cpus, m->budgets[k].cpus);
            assert_int_equal(b[k].workers, m->budgets[k].workers);
            assert_int_equal(b[k].mem_mib, m->budgets[k].mem_mib);
        }
        dt_topology_free(t);
    }
}

static void test_numas(void **state)
{
    (void)state;
    static const unsigned ids[] = {0, 2, 1, 3};
    static const uint64_t mem[] = {379387, 381019, 381019, 381018};
    struct dt_topology *t = read_machine("memorysidecaches");
    size_t order[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(t->numas[i].id, ids[i]);
        assert_int_equal(t->numas[i].mem_mib, mem[i]);
        assert_int_equal(t->numas[i].cache_mib, 96 * 1024);
        assert_int_equal(t->numas[i].package, i / 2);
    }
    /* in the order of the machine; nodes 0 and 2 share a package, which the firmware knows as well
     */
    dt_topology_nearest(t, 1, order);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    dt_topology_free(t);
    t = read_machine("28intel64-2p2g7c-CoDgroups.v1tov2"); /* where the firmware says nothing */
    dt_topology_nearest(t, 3, order);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 0);
    assert_int_equal(order[3], 1);
    dt_topology_free(t);
}

/* NUMA nodes of CPUs; "": of none in particular. */
static void test_near_mem(void **state)
{
    static const struct {
        const char *machine, *pus, *want;
    } cases[] = {
        {"32em64t-2n8c2t-pci-normalio", "0,16", "0"},
        {"32em64t-2n8c2t-pci-normalio", "9-10,25", "1"},
        {"32em64t-2n8c2t-pci-normalio", "0,8", ""},
        {"192em64t-24n8c2t", "48,240", "6"},
        {"192em64t-24n8c2t", "0-15,192-207", "0-1"},
        {"192em64t-24n8c2t", "0-191", ""},
        /* the kernel's numbers, not those in the order of the machine */
        {"memorysidecaches", "2,6", "2"},
        {"memorysidecaches", "1,3", "1,3"},
        {"power8gpudistances", "80-81,88", "1"},
        {"devel09-pci", "0,2", "0"},
        {"devel09-pci", "0-1", ""},
        {"devel09-pci", "", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_topology *t = read_machine(cases[i].machine);
        hwloc_bitmap_t pus = hwloc_bitmap_alloc();
        hwloc_bitmap_list_sscanf(pus, cases[i].pus);
        hwloc_bitmap_t mem = dt_topology_near_mem(t, pus);
        char *text = mem ? dt_pus_list(mem) : dt_xstrdup("");
        print_message("# %s: %s\n", cases[i].machine, cases[i].pus);
        assert_string_equal(text, cases[i].want);
        free(text);
        hwloc_bitmap_free(mem);
        hwloc_bitmap_free(pus);
        dt_topology_free(t);
    }
}

/* ---- GPUs ---- */

/* The PUs of the cores of a GPU's NUMA node; of all cores where it is near none that has any.
 * Caller frees. */
static hwloc_bitmap_t pus_near(const struct dt_topology *t, size_t gpu)
{
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    size_t numa = t->gpus[gpu].numa;
    if (numa != DT_NOWHERE && dt_topology_cores(t, numa) == 0)
        numa = DT_NOWHERE;
    for (size_t i = 0; i < t->ncores; i++)
        if (numa == DT_NOWHERE || t->cores[i].numa == numa)
            hwloc_bitmap_or(pus, pus, t->cores[i].pus);
    return pus;
}

static char *near(const struct dt_topology *t, size_t gpu)
{
    hwloc_bitmap_t pus = pus_near(t, gpu);
    char *text = dt_pus_list(pus);
    hwloc_bitmap_free(pus);
    return text;
}

static void check_near(const struct dt_topology *t, size_t gpu, const char *want)
{
    char *text = near(t, gpu);
    assert_string_equal(text, want);
    free(text);
}

static void test_gpus_of_pci_classes(void **state)
{
    (void)state;
    /* two 3D controllers without a name, one with CUDA's, a VGA controller with OpenCL's; not the
     * console at 05:03.0 */
    static const char *const names[] = {"0000:03:00.0", "0000:83:00.0", "cuda0", "opencl0d1"};
    static const char *const bus[] = {"0000:03:00.0", "0000:83:00.0", "0000:84:00.0",
                                      "0000:84:00.1"};
    struct dt_topology *t = read_machine("32em64t-2n8c2t-pci-normalio");
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(t->gpus[i].name, names[i]);
        assert_string_equal(t->gpus[i].bus, bus[i]);
        check_near(t, i, i == 0 ? "0-7,16-23" : "8-15,24-31");
    }
    assert_int_equal(dt_topology_link(t, 0, 1), DT_LINK_FAR);
    assert_int_equal(dt_topology_link(t, 1, 2), DT_LINK_BRIDGE); /* the host's */
    dt_topology_free(t);
}

static void test_nvlink(void **state)
{
    (void)state;
    struct dt_topology *t = read_machine("power8gpudistances");
    size_t group[16];
    assert_int_equal(t->nvlink[0 * 4 + 1], 40000);
    assert_int_equal(t->nvlink[1 * 4 + 2], 0);
    assert_int_equal(t->nvlink[0], 0); /* not to itself, and not by way of a processor */
    assert_string_equal(t->gpus[3].name, "nvml3");
    check_near(t, 1, "0-1,8-9,16-17,24-25");
    check_near(t, 2, "80-81,88-89,96-97,104-105");
    dt_topology_groups(t, group);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(group[i], i / 2);
    dt_topology_free(t);

    t = read_machine("nvidiaDGX2"); /* eight GPUs on six switches, twice */
    assert_int_equal(t->nvlink[0 * 16 + 7], 6 * 25000);
    assert_int_equal(t->nvlink[7 * 16 + 8], 0);
    assert_int_equal(dt_topology_link(t, 0, 7), DT_LINK_NVLINK);
    assert_int_equal(dt_topology_link(t, 7, 8), DT_LINK_FAR);
    assert_string_equal(t->gpus[10].name, "nvml10"); /* not behind nvml1 */
    dt_topology_groups(t, group);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(group[i], i / 8);
    check_near(t, 9, "24-25");
    dt_topology_free(t);
}

/* ---- plans ---- */

/* "ps:2 worker:4:1": roles with CPUs and GPUs. */
static size_t read_seats(const char *text, struct dt_seat *seats)
{
    struct dt_strv words = DT_STRV_INIT;
    dt_strv_split(&words, text, " ");
    for (size_t i = 0; i < words.n; i++) {
        const char *colon = strchr(words.v[i], ':'), *second = strchr(colon + 1, ':');
        bool server = words.v[i][0] == 'p';
        seats[i] = (struct dt_seat){.role = server ? "ps" : "worker",
                                    .server = server,
                                    .cpus = strtoul(colon + 1, NULL, 10),
                                    .gpus = second ? strtoul(second + 1, NULL, 10) : 0};
    }
    size_t n = words.n;
    dt_strv_free(&words);
    return n;
}

/* No PU is in two seats, none is off or not allowed, and no core is split. */
static void check_seats(const struct dt_topology *t, hwloc_const_bitmap_t allowed, bool threads,
                        const struct dt_seat *seats, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_false(hwloc_bitmap_intersects(seats[i].pus, seats[j].pus));
    for (size_t c = 0; c < t->ncores && !threads; c++) {
        hwloc_bitmap_t usable = hwloc_bitmap_dup(t->cores[c].pus);
        size_t sitting = 0;
        if (allowed)
            hwloc_bitmap_and(usable, usable, allowed);
        for (size_t i = 0; i < n; i++) {
            if (!hwloc_bitmap_intersects(seats[i].pus, t->cores[c].pus))
                continue;
            sitting++;
            assert_true(hwloc_bitmap_isincluded(usable, seats[i].pus));
        }
        assert_true(sitting <= 1);
        hwloc_bitmap_free(usable);
    }
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    for (size_t c = 0; c < t->ncores; c++)
        hwloc_bitmap_or(all, all, t->cores[c].pus);
    if (allowed)
        hwloc_bitmap_and(all, all, allowed);
    for (size_t i = 0; i < n; i++) {
        assert_true(hwloc_bitmap_isincluded(seats[i].pus, all));
        assert_true(hwloc_bitmap_weight(seats[i].pus) >= (int)seats[i].cpus);
    }
    hwloc_bitmap_free(all);
}

struct plan {
    const char *machine, *allowed; /* NULL: all */
    const char *pool;              /* GPUs; NULL: all */
    const char *seats;             /* "threads ": cores may be shared */
    const char *want;              /* "CPUs/GPUs CPUs/GPUs", or the error */
};

static const struct plan plans[] = {
    /* cores of one or two PUs, as the others are off */
    {"16em64t-4s2c2t-offlines", NULL, NULL, "worker:2 worker:2 worker:2", "0,4,12/ 1,6/ 3,15/"},
    {"16em64t-4s2c2t-offlines", NULL, NULL, "worker:2 worker:2 worker:2 worker:2",
     "worker, task 4 of 4 on the node, needs whole cores with 2 CPUs, and 0 are free of 7"},
    {"16em64t-4s2c2t-offlines", "0-4", NULL, "worker:1 worker:1 worker:1 worker:1", "0/ 4/ 1/ 3/"},
    /* the server next to InfiniBand, which is at node 6 */
    {"192em64t-24n8c2t", NULL, NULL, "ps:2 worker:16 worker:16",
     "48,240/ 0-7,192-199/ 8-15,200-207/"},
    {"192em64t-24n8c2t", NULL, NULL, "worker:20", "0-9,192-201/"},
    /* clusters on die: a worker each, but the server has taken from one */
    {"28intel64-2p2g7c-CoDgroups.v1tov2", NULL, NULL, "worker:7 worker:7 ps:2 worker:7",
     "7-13/ 14-20/ 0-1/ 21-27/"},
    {"28intel64-2p2g7c-CoDgroups.v1tov2", NULL, NULL, "worker:7 worker:7 ps:2 worker:7 worker:7",
     "worker, task 5 of 5 on the node, needs whole cores with 7 CPUs, and 5 are free of 28"},
    {"32em64t-2n8c2t-pci-normalio", NULL, NULL, "ps:2 worker:4:1 worker:4:1 worker:4:1 worker:4:1",
     "14,30/ 0-1,16-17/0 8-9,24-25/1 10-11,26-27/2 12-13,28-29/3"},
    /* one CPU is a core, and two workers are not on the two threads of one */
    {"32em64t-2n8c2t-pci-normalio", NULL, NULL, "worker:1 worker:1", "0,16/ 8,24/"},
    /* four CPUs of two cores, as Slurm gives them to four tasks with one each: only as threads */
    {"32em64t-2n8c2t-pci-normalio", "8,9,24,25", NULL, "worker:1 worker:1 worker:1 worker:1",
     "worker, task 3 of 4 on the node, needs whole cores with 1 CPUs, and 0 are free of 4"},
    {"32em64t-2n8c2t-pci-normalio", "8,9,24,25", NULL,
     "threads worker:1 worker:1 worker:1 worker:1", "8/ 24/ 9/ 25/"},
    /* a thread of a core belongs to somebody else */
    {"32em64t-2n8c2t-pci-normalio", "0,1,17,9,25", NULL, "worker:2 worker:1", "0-1,17/ 9,25/"},
    /* the third worker finds too little left next to its GPU, and has all its cores in the other
       node */
    {"32em64t-2n8c2t-pci-normalio", NULL, "1,2,3", "ps:2 worker:6:1 worker:6:1 worker:6:1",
     "14,30/ 8-10,24-26/1 11-13,27-29/2 0-2,16-18/3"},
    {"96em64t-4n4d3ca2co-pci", NULL, NULL, "worker:24 ps:6", "24-47/ 0,4,8,12,16,20/"},
    {"devel09-pci", NULL, NULL, "ps:1 worker:1 worker:1 worker:1", "0/ 1/ 2/ 3/"},
    {"memorysidecaches", NULL, NULL, "worker:20 worker:20 worker:20 worker:20",
     "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60,64,68,72,76/ "
     "2,6,10,14,18,22,26,30,34,38,42,46,50,54,58,62,66,70,74,78/ "
     "1,5,9,13,17,21,25,29,33,37,41,45,49,53,57,61,65,69,73,77/ "
     "3,7,11,15,19,23,27,31,35,39,43,47,51,55,59,63,67,71,75,79/"},
    /* groups: a worker with eight GPUs has one, one with four a half, four with one each are in the
       same */
    {"nvidiaDGX2", NULL, NULL, "worker:2:8 worker:2:8",
     "0-1/0,1,2,3,4,5,6,7 24-25/8,9,10,11,12,13,14,15"},
    {"nvidiaDGX2", NULL, NULL, "worker:1:4 worker:1:4 worker:1:4",
     "0/0,1,2,3 1/4,5,6,7 24/8,9,10,11"},
    {"nvidiaDGX2", NULL, NULL, "worker:1:1 worker:1:1 worker:1:1 worker:1:1", "0/0 1/1 24/2 25/3"},
    {"nvidiaDGX2", NULL, "6,7,8,9,10", "worker:1:3 worker:1:2", "24/8,9,10 0/6,7"},
    {"nvidiaDGX2", NULL, "7,8,9", "worker:1:2", "24/8,9"},
    {"nvidiaDGX2", NULL, "6,9,10", "worker:1:3", "24/9,10,6"},
    {"nvidiaDGX2", NULL, "0,16", "worker:1:1",
     "GPU 16 is not in the node's topology, which has 16"},
    {"nvidiaDGX2", NULL, "0,1,2", "worker:1:2 worker:1:2",
     "the tasks on the node need 4 GPUs, and it has 3 for them"},
    {"power8gpudistances", NULL, NULL, "worker:4:1 worker:4:1 worker:4:1 worker:4:1",
     "0-1,8-9/0 16-17,24-25/1 80-81,88-89/2 96-97,104-105/3"},
    {"power8gpudistances", NULL, "1,2,3", "worker:8:2", "80-81,88-89,96-97,104-105/2,3"},
    /* the cores next to the GPU are not allowed: the nearest that are */
    {"power8gpudistances", "0,1,8", "2", "worker:2:1", "0-1/2"},
};

static char *plan_text(const struct dt_seat *seats, size_t n)
{
    struct dt_buf b = DT_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        char *pus = dt_pus_list(seats[i].pus);
        dt_buf_addf(&b, "%s%s/", i ? " " : "", pus);
        for (size_t j = 0; j < seats[i].gpus; j++)
            dt_buf_addf(&b, "%s%zu", j ? "," : "", seats[i].gpu[j]);
        free(pus);
    }
    return dt_buf_take(&b);
}

static size_t read_pool(const struct dt_topology *t, const char *text, size_t *pool)
{
    struct dt_strv words = DT_STRV_INIT;
    size_t n = text ? 0 : t->ngpus;
    for (size_t i = 0; i < n; i++)
        pool[i] = i;
    dt_strv_split(&words, text ? text : "", ",");
    for (size_t i = 0; i < words.n; i++)
        pool[n++] = strtoul(words.v[i], NULL, 10);
    dt_strv_free(&words);
    return n;
}

static void check_plan(const struct plan *p)
{
    struct dt_topology *t = read_machine(p->machine);
    struct dt_error e = DT_ERROR_INIT;
    struct dt_seat seats[8];
    bool threads = dt_starts_with(p->seats, "threads ");
    size_t pool[16], n = read_seats(p->seats + (threads ? 8 : 0), seats),
                     npool = read_pool(t, p->pool, pool);
    hwloc_bitmap_t allowed = p->allowed ? hwloc_bitmap_alloc() : NULL;
    if (allowed)
        hwloc_bitmap_list_sscanf(allowed, p->allowed);
    print_message("# %s: %s\n", p->machine, p->seats);
    if (dt_topology_share_gpus(t, pool, npool, seats, n, &e) == 0 &&
        dt_topology_seat(t, allowed, threads, seats, n, &e) == 0) {
        char *text = plan_text(seats, n);
        assert_string_equal(text, p->want);
        check_seats(t, allowed, threads, seats, n);
        free(text);
    } else {
        assert_string_equal(e.text, p->want);
        for (size_t i = 0; i < n; i++)
            assert_null(seats[i].pus);
    }
    dt_seats_free(seats, n);
    hwloc_bitmap_free(allowed);
    dt_error_clear(&e);
    dt_topology_free(t);
}

static void test_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(plans); i++)
        check_plan(&plans[i]);
}

/* ---- any plan ---- */

static uint64_t next_random(uint64_t *x) /* xorshift */
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static size_t below(uint64_t *x, size_t n)
{
    return (size_t)(next_random(x) % n);
}

static size_t any_seats(uint64_t *x, const struct dt_topology *t, struct dt_seat *seats,
                        size_t most)
{
    size_t n = 1 + below(x, most);
    for (size_t i = 0; i < n; i++) {
        bool server = below(x, 4) == 0;
        seats[i] = (struct dt_seat){.role = server ? "ps" : "worker",
                                    .server = server,
                                    .cpus = 1 + below(x, 1 + dt_topology_pus(t) / n),
                                    .gpus = server || !t->ngpus ? 0 : below(x, 3)};
    }
    return n;
}

/* No GPU twice, and none that is not in the pool. */
static void check_gpus(const struct dt_topology *t, const bool *in_pool,
                       const struct dt_seat *seats, size_t n)
{
    bool *taken = dt_xcalloc(t->ngpus, sizeof(*taken));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < seats[i].gpus; k++) {
            assert_true(in_pool[seats[i].gpu[k]]);
            assert_false(taken[seats[i].gpu[k]]);
            taken[seats[i].gpu[k]] = true;
        }
    free(taken);
}

/* A single task with one GPU has cores of its node where those suffice. */
static void check_alone(const struct dt_topology *t, hwloc_const_bitmap_t allowed,
                        const struct dt_seat *seat)
{
    if (seat->gpus != 1 || t->gpus[seat->gpu[0]].numa == DT_NOWHERE)
        return;
    hwloc_bitmap_t near = pus_near(t, seat->gpu[0]);
    hwloc_bitmap_and(near, near, allowed);
    if (hwloc_bitmap_weight(near) >= (int)seat->cpus)
        assert_true(hwloc_bitmap_isincluded(seat->pus, near));
    hwloc_bitmap_free(near);
}

static void check_any(uint64_t *x, const struct dt_topology *t)
{
    struct dt_seat seats[12];
    size_t n = any_seats(x, t, seats, 12), npool = 0, need = 0, all = 0;
    size_t *pool = dt_xcalloc(t->ngpus, sizeof(*pool));
    bool *in_pool = dt_xcalloc(t->ngpus, sizeof(*in_pool));
    bool threads = below(x, 2);
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    for (size_t i = 0; i < t->ngpus; i++)
        if ((in_pool[i] = below(x, 4) > 0))
            pool[npool++] = i;
    for (size_t i = 0; i < t->ncores; i++)
        for (int pu = hwloc_bitmap_first(t->cores[i].pus); pu >= 0;
             pu = hwloc_bitmap_next(t->cores[i].pus, pu))
            if (below(x, 5) > 0)
                hwloc_bitmap_set(allowed, (unsigned)pu);
    for (size_t i = 0; i < n; i++) {
        need += seats[i].gpus;
        all += seats[i].cpus;
    }
    int gpus = dt_topology_share_gpus(t, pool, npool, seats, n, NULL);
    assert_int_equal(gpus, need <= npool ? 0 : -1);
    if (gpus == 0) {
        check_gpus(t, in_pool, seats, n);
        int rc = dt_topology_seat(t, allowed, threads, seats, n, NULL);
        if (threads) /* then whatever there is can be used */
            assert_int_equal(rc, (int)all <= hwloc_bitmap_weight(allowed) ? 0 : -1);
        if (rc == 0)
            check_seats(t, allowed, threads, seats, n);
        if (rc == 0 && n == 1)
            check_alone(t, allowed, &seats[0]);
    }
    dt_seats_free(seats, n);
    hwloc_bitmap_free(allowed);
    free(in_pool);
    free(pool);
}

static void test_any_plan(void **state)
{
    uint64_t x = 88172645463325252;
    (void)state;
    for (size_t i = 0; i < COUNT(machines); i++) {
        struct dt_topology *t = read_machine(machines[i].name);
        for (size_t k = 0; k < 300; k++)
            check_any(&x, t);
        dt_topology_free(t);
    }
}

/* ---- words and files ---- */

static void test_text(void **state)
{
    (void)state;
    static const char want[] = "2 packages, 2 NUMA nodes, 16 cores, 32 CPUs, 4 GPUs\n"
                               "  NUMA node 0, package 0: 32739 MiB, 8 cores: CPUs 0-7,16-23\n"
                               "    GPU 0: 0000:03:00.0 (0000:03:00.0)\n"
                               "  NUMA node 1, package 1: 32768 MiB, 8 cores: CPUs 8-15,24-31\n"
                               "    GPU 1: 0000:83:00.0 (0000:83:00.0)\n"
                               "    GPU 2: cuda0 (0000:84:00.0)\n"
                               "    GPU 3: opencl0d1 (0000:84:00.1)\n"
                               "    network: mlx5_0 (fabric)\n"
                               "    network: eth0\n"
                               "    network: eth1\n"
                               "  GPUs that belong together: 0 | 1,2,3\n"
                               "  4 workers: 1 GPU, 4 CPUs, 10922 MiB each\n";
    struct dt_topology *t = read_machine("32em64t-2n8c2t-pci-normalio");
    char *text = dt_topology_text(t);
    assert_string_equal(text, want);
    free(text);
    struct json_object *o = dt_topology_to_json(t);
    assert_int_equal(dt_json_int(o, "cpus", 0), 32);
    struct json_object *gpu = dt_json_at(dt_json_get(o, "gpus"), 2);
    assert_string_equal(dt_json_str(gpu, "name", ""), "cuda0");
    assert_int_equal(dt_json_int(gpu, "group", -1), 1);
    assert_int_equal(dt_json_int(gpu, "numa", -1), 1);
    json_object_put(o);
    dt_topology_free(t);
}

static void test_seats_text(void **state)
{
    (void)state;
    struct dt_topology *t = read_machine("power8gpudistances");
    size_t pool[] = {0, 1, 2, 3};
    struct dt_seat seats[2];
    size_t n = read_seats("worker:4:2 ps:1", seats);
    assert_int_equal(dt_topology_share_gpus(t, pool, 4, seats, n, NULL), 0);
    assert_int_equal(dt_topology_seat(t, NULL, false, seats, n, NULL), 0);
    char *text = dt_seats_text(t, seats, n);
    assert_string_equal(text, "worker: CPUs 0-1,8-9 (0x303), GPUs 0,1, memory of NUMA node 0\n"
                              "ps: CPUs 80-81 (0x300000000000000000000), memory of NUMA node 1\n");
    free(text);
    struct json_object *o = dt_seats_to_json(t, seats, n), *first = dt_json_at(o, 0);
    assert_string_equal(dt_json_str(first, "mask", ""), "0x303");
    assert_string_equal(dt_json_str(first, "memory", ""), "0");
    assert_int_equal(dt_json_count(dt_json_get(first, "gpus")), 2);
    json_object_put(o);
    dt_seats_free(seats, n);
    dt_topology_free(t);
}

static void write_text(const char *dir, const char *name, const char *text)
{
    char *path = dt_xasprintf("%s/%s", dir, name);
    assert_int_equal(dt_write_file(path, text, strlen(text), 0600, NULL), 0);
    free(path);
}

static void check_found(const char *given, const char *cache, const char *node, const char *key,
                        const char *want)
{
    char *path = dt_topology_find(given, cache, node, key);
    const char *slash = path ? strrchr(path, '/') : NULL;
    assert_string_equal(slash ? slash + 1 : "none", want);
    free(path);
}

static void test_files(void **state)
{
    (void)state;
    char given[] = "/tmp/dt-test-XXXXXX", cache[] = "/tmp/dt-test-XXXXXX", key[17], other[17];
    assert_non_null(mkdtemp(given));
    assert_non_null(mkdtemp(cache));
    struct dt_node_class kind = {
        .cpus = 64, .sockets = 2, .cores = 16, .threads = 2, .gres = "gpu:a100:4"};
    dt_topology_key(&kind, key);
    kind.features = "fast";
    dt_topology_key(&kind, other);
    assert_string_equal(key, other);
    kind.gres = NULL;
    dt_topology_key(&kind, other);
    assert_string_not_equal(key, other);
    char *file = dt_xasprintf("%s.xml", key);
    write_text(given, "h1.xml", "");
    write_text(given, "h[2-4,9].xml", "");
    write_text(given, "h[5.xml", "");
    write_text(cache, file, "");
    check_found(given, cache, "h1", key, "h1.xml");
    check_found(given, cache, "h3", key, "h[2-4,9].xml");
    check_found(given, cache, "h5", key, file);
    check_found(given, cache, "h5", other, "none");
    check_found(NULL, cache, "h1", NULL, "none");
    check_found(NULL, NULL, "h1", key, "none");
    write_text(given, file, "");
    check_found(given, NULL, "h5", key, file);
    const char *names[] = {"h1.xml", "h[2-4,9].xml", "h[5.xml", file};
    for (size_t i = 0; i < COUNT(names); i++) {
        char *a = dt_xasprintf("%s/%s", given, names[i]),
             *b = dt_xasprintf("%s/%s", cache, names[i]);
        unlink(a);
        unlink(b);
        free(a);
        free(b);
    }
    assert_int_equal(rmdir(given), 0);
    assert_int_equal(rmdir(cache), 0);
    free(file);
}

/* The cache is below XDG_CACHE_HOME. */
static void test_unknown(void **state)
{
    char home[] = "/tmp/dt-test-XXXXXX", key[17];
    struct dt_node_class kinds[] = {{.cpus = 8, .cores = 8}, {.cpus = 4, .cores = 4}};
    struct dt_cluster c = {.classes = kinds, .n = 2};
    (void)state;
    assert_non_null(mkdtemp(home));
    setenv("XDG_CACHE_HOME", home, 1);
    char *cache = dt_topology_cache();
    assert_int_equal(dt_mkdirs(cache, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_true(dt_topology_unknown(&c));
        dt_topology_key(&kinds[i], key);
        char *file = dt_xasprintf("%s.xml", key);
        write_text(cache, file, "");
        free(file);
    }
    assert_false(dt_topology_unknown(&c));
    for (size_t i = 0; i < 2; i++) {
        dt_topology_key(&kinds[i], key);
        char *path = dt_xasprintf("%s/%s.xml", cache, key);
        unlink(path);
        free(path);
    }
    char *parent = dt_xasprintf("%s/dt-tune", home);
    assert_int_equal(rmdir(cache), 0);
    assert_int_equal(rmdir(parent), 0);
    assert_int_equal(rmdir(home), 0);
    unsetenv("XDG_CACHE_HOME");
    free(parent);
    free(cache);
}

static void check_error(const char *path, const char *want)
{
    struct dt_error e = DT_ERROR_INIT;
    assert_null(dt_topology_read(path, &e));
    if (!strstr(e.text, want))
        fail_msg("\"%s\" is not in: %s", want, e.text);
    dt_error_clear(&e);
}

static void test_errors(void **state)
{
    (void)state;
    char dir[] = "/tmp/dt-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *path = dt_xasprintf("%s/no.xml", dir);
    check_error(path, path);
    write_text(dir, "no.xml", "{}");
    check_error(path, "is no topology");
    unlink(path);
    rmdir(dir);
    free(path);
}

/* This machine, with whatever it has. */
static void test_here(void **state)
{
    (void)state;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_topology *t = dt_topology_here(&e);
    if (!t)
        fail_msg("%s", e.text);
    assert_true(t->ncores >= 1);
    char *xml = dt_topology_export(&e);
    assert_non_null(strstr(xml, "<topology"));
    free(xml);
    dt_topology_free(t);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_numas),
        cmocka_unit_test(test_near_mem),
        cmocka_unit_test(test_gpus_of_pci_classes),
        cmocka_unit_test(test_nvlink),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_seats_text),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_any_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
