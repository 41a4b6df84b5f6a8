/* The cluster model: its file, its picture, what of it a job may use, and which jobs can start on
 * it. */
#include "expand/expand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- helpers ---- */

static const char small[] =
    "{\"version\": 1, \"cluster\": \"c\", \"slurm\": \"22.05.8\", \"backfill\": true,"
    " \"scheduling\": {\"memory\": true, \"cores\": true},"
    " \"kinds\": ["
    "  {\"cpus\": 8, \"mem\": 8192, \"tmp\": 1024, \"gpus\": 4, \"sockets\": 2, \"cores\": 2, \"threads\": 2,"
    "   \"weight\": 5, \"features\": \"big,fast\", \"gres\": \"gpu:a:2(S:0,1),gpu:b:2(S:1),nic:1\","
    "   \"partitions\": \"main,short\", \"nodes\": [{\"state\": \"idle\", \"names\": \"n[1-3]\", \"usable\": true},"
    "                                            {\"state\": \"down\", \"names\": \"n4\"}]},"
    "  {\"cpus\": 4, \"mem\": 4096, \"tmp\": 1024, \"gpus\": 0, \"sockets\": 1, \"cores\": 4, \"threads\": 1,"
    "   \"features\": \"\", \"gres\": \"\", \"partitions\": \"main\","
    "   \"nodes\": [{\"state\": \"mixed\", \"names\": \"n[5-8]\", \"usable\": true,"
    "               \"places\": \"6-7,9-10\"}]}],"
    " \"partitions\": ["
    "  {\"name\": \"main\", \"state\": \"up\", \"preset\": true, \"def_mem_per_cpu\": 512, \"total_nodes\": 8,"
    "   \"total_cpus\": 48},"
    "  {\"name\": \"short\", \"state\": \"up\", \"max_nodes\": 2, \"max_time\": 600, \"max_mem_per_cpu\": 1000,"
    "   \"max_cpus_per_node\": 6, \"total_nodes\": 4, \"qos\": \"few\"}],"
    " \"switches\": [{\"name\": \"s0\", \"level\": 1, \"switches\": \"s[1-2]\"},"
    "              {\"name\": \"s1\", \"level\": 0, \"nodes\": \"n[1-4]\"},"
    "              {\"name\": \"s2\", \"level\": 0, \"nodes\": \"n[5-8]\"}],"
    " \"licenses\": {\"m\": 4},"
    " \"limits\": ["
    "  {\"who\": \"user u in account a\", \"user\": \"u\", \"account\": \"a\", \"preset\": true, \"jobs\": 3},"
    "  {\"who\": \"user u in account b\", \"user\": \"u\", \"account\": \"b\", \"per_job\": {\"cpu\": 4}},"
    "  {\"who\": \"account a\", \"account\": \"a\", \"parent\": \"root\", \"group\": {\"gres/gpu\": 2}},"
    "  {\"who\": \"account root\", \"account\": \"root\"},"
    "  {\"who\": \"QOS few\", \"qos\": \"few\", \"is_qos\": true, \"per_job\": {\"node\": 1}},"
    "  {\"who\": \"QOS normal\", \"qos\": \"normal\", \"is_qos\": true, \"max_time\": 3600}]}";

static struct dt_system *system_of(const char *text, struct dt_error *e)
{
    struct json_object *o = dt_json_parse(text, "C.json", e);
    struct dt_system *s = o ? dt_system_from_json(o, "C.json", e) : NULL;
    json_object_put(o);
    return s;
}

static struct dt_submission *submission(const char *const *words)
{
    struct dt_submission *s = dt_xcalloc(1, sizeof(*s));
    s->script_name = dt_xstrdup("train.sh");
    for (; *words; words++) {
        size_t n = strcspn(*words, "=");
        s->options = dt_xrealloc(s->options, s->n + 1, sizeof(*s->options));
        struct dt_option *o = &s->options[s->n++];
        *o = (struct dt_option){.origin = DT_FROM_ARGV, .name = dt_xstrndup(*words, n)};
        o->def = dt_sbatch_option_find(o->name);
        o->value = (*words)[n] ? dt_xstrdup(*words + n + 1) : NULL;
    }
    return s;
}

/* ---- the file ---- */

static void a_system_goes_through_json_unchanged(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    (void)state;
    if (!s)
        fail_msg("%s", e.text);
    assert_int_equal(s->nkinds, 2);
    assert_int_equal(s->kinds[0].total, 4);
    assert_int_equal(s->kinds[0].size.count, 3);
    assert_true(isinf(s->partitions[0].limits.max_time));
    struct json_object *o = dt_system_to_json(s);
    char *text = dt_json_text(o);
    struct dt_system *again = dt_system_from_json(o, "again", &e);
    struct json_object *o2 = dt_system_to_json(again);
    char *text2 = dt_json_text(o2);
    assert_string_equal(text, text2);
    free(text);
    free(text2);
    json_object_put(o);
    json_object_put(o2);
    dt_system_free(s);
    dt_system_free(again);
}

/* The text with `from` replaced by `to`; the caller frees. */
static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    return dt_xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void faulty_files_are_told_with_their_place(void **state)
{
    static const struct {
        const char *from, *to, *error;
    } cases[] = {
        {"\"version\": 1", "\"version\": 2", "C.json: version: 1 is needed here"},
        {"\"mem\": 8192", "\"mem\": \"8G\"", "C.json: kinds[0].mem: a whole number"},
        {"\"mem\": 4096", "\"mem\": -1", "C.json: kinds[1].mem: a whole number"},
        {"\"weight\"", "\"wheight\"",
         "C.json: kinds[0].wheight: unknown key; did you mean \"weight\"?"},
        {"\"names\": \"n4\"", "\"names\": \"n[4\"", "C.json: kinds[0].nodes[1].names: node list"},
        {"\"usable\": true", "\"usable\": 1", "C.json: kinds[0].nodes[0].usable: true or false"},
        {"\"max_time\": 600", "\"max_time\": \"1:00\"",
         "C.json: partitions[1].max_time: a number of seconds"},
        {"\"partitions\": \"main\"", "\"partitions\": \"mian\"",
         "C.json: kinds: [1].partitions: there is no partition \"mian\""},
        {"\"group\": {\"gres/gpu\": 2}", "\"group\": 2", "C.json: limits[2].group: an object like"},
        {"\"cores\": true}", "\"cores\": 1}", "C.json: scheduling.cores: true or false"},
        {"\"cluster\": \"c\"", "\"cluster\": 3", "C.json: cluster: a string"},
        {"\"6-7,9-10\"", "6", "C.json: kinds[1].nodes[0].places: a string"},
        {"6-7,9-10", "6-7,9", "C.json: kinds[1].nodes[0].places: as many places"},
        {"6-7,9-10", "9-10,6-7", "C.json: kinds[1].nodes[0].places: as many places"},
        {"6-7,9-10", "6-8,8-8", "C.json: kinds[1].nodes[0].places: as many places"},
        {"6-7,9-10", "0-3", "C.json: kinds[1].nodes[0].places: as many places"},
        {"6-7,9-10", "6-9,", "C.json: kinds[1].nodes[0].places: as many places"},
        {"6-7,9-10", "6-9 ", "C.json: kinds[1].nodes[0].places: as many places"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        char *text = changed(small, cases[i].from, cases[i].to);
        assert_null(system_of(text, &e));
        if (!e.text || !dt_starts_with(e.text, cases[i].error))
            fail_msg("case %zu: %s", i, e.text ? e.text : "no error");
        free(text);
        dt_error_clear(&e);
    }
}

/* ---- the picture ---- */

static size_t longest_line(const char *text)
{
    size_t most = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return most;
}

static void the_picture_names_everything_in_100_columns(void **state)
{
    static const char *const parts[] = {
        "8 nodes, 7 of them usable, of 2 kinds; jobs get whole cores and memory",
        "  4 nodes, each 8 CPUs (2 sockets x 2 cores x 2 threads), 8 GiB, 1 GiB of disk,",
        "      3 idle: n[1-3]\n      1 down (not usable): n4\n",
        "  main (default): up, 7 of 8 nodes usable; unless asked for 512 MiB a CPU\n",
        "  short: up, 3 of 4 nodes usable; at most 2 nodes a job; at most 10:00;",
        "SWITCHES\n  s0\n    s1: n[1-4]\n    s2: n[5-8]\n",
        "LICENCES\n  4 m\n",
        "  user u in account b: at most 4 cpu a job\n",
        "  account a: at most 2 gres/gpu in all\n",
    };
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    char *text = dt_system_text(s);
    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("not there: %s\nin: %s", parts[i], text);
    assert_true(longest_line(text) <= 100);
    free(text);
    dt_system_free(s);
}

static void a_part_of_a_system_is_that_alone(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    (void)state;
    assert_int_equal(dt_system_keep(s, "n4", NULL, &e), 0);
    assert_true(s->nkinds == 1 && s->kinds[0].total == 1 && s->kinds[0].size.count == 0);
    assert_string_equal(s->kinds[0].groups[0].names, "n4");
    assert_true(s->npartitions == 2 && s->nswitches == 1);
    dt_system_free(s);
    s = system_of(small, &e);
    assert_int_equal(dt_system_keep(s, NULL, "short", &e), 0);
    assert_true(s->nkinds == 1 && s->kinds[0].total == 4 && s->npartitions == 1 &&
                s->nswitches == 1);
    assert_int_equal(dt_system_keep(s, "n5", NULL, &e), -1);
    assert_string_equal(e.text, "--node: there is no node \"n5\"");
    dt_system_free(s);
    s = system_of(small, &e);
    assert_int_equal(dt_system_keep(s, NULL, "shrt", &e), -1);
    assert_string_equal(e.text,
                        "--partition: there is no partition \"shrt\"; there are: main, short");
    dt_system_free(s);
    dt_error_clear(&e);
}

/* ---- what a job may use ---- */

static void a_job_may_use_its_partition_and_is_bound_by_its_limits(void **state)
{
    static const struct {
        const char *words[4];
        size_t nodes, classes;
        const char *bound; /* in order */
        const char *error;
    } cases[] = {
        {{NULL}, 7, 2, "QOS normal,user u in account a,account a,account root", NULL},
        {{"partition=short"},
         3,
         1,
         "QOS few,QOS normal,user u in account a,account a,account root",
         NULL},
        {{"partition=short,main"},
         3,
         1,
         "QOS few,QOS normal,user u in account a,account a,account root",
         NULL},
        {{"account=b", "qos=few"}, 7, 2, "QOS few,user u in account b", NULL},
        {{"exclude=n[1-2,5]"}, 4, 2, "QOS normal,user u in account a,account a,account root", NULL},
        {{"constraint=big&fast"},
         3,
         1,
         "QOS normal,user u in account a,account a,account root",
         NULL},
        {{"constraint=none"}, 0, 0, NULL, "partition main has no node that is up and fits"},
        {{"partition=x"},
         0,
         0,
         NULL,
         "--partition: there is no partition \"x\"; there are: main, short"},
        {{"nodelist=n9"},
         0,
         0,
         NULL,
         "--nodelist: there is no node \"n9\" in partition main; its nodes are n[1-8]"},
    };
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_submission *sub = submission(cases[i].words);
        struct dt_cluster *c = dt_job_cluster(s, sub, false, &e);
        struct dt_strv bound = DT_STRV_INIT;
        if (!c != (cases[i].error != NULL) || (!c && !dt_starts_with(e.text, cases[i].error)))
            fail_msg("case %zu: %s", i, c ? "no error" : e.text);
        for (size_t j = 0; c && j < c->nbinding; j++)
            dt_strv_add(&bound, c->binding[j].who);
        char *list = dt_strv_join(&bound, ",");
        if (c && (dt_cluster_nodes(c) != cases[i].nodes || c->n != cases[i].classes ||
                  strcmp(list, cases[i].bound)))
            fail_msg("case %zu: %zu nodes of %zu classes, %s", i, dt_cluster_nodes(c), c->n, list);
        free(list);
        dt_strv_free(&bound);
        dt_cluster_free(c);
        dt_submission_free(sub);
    }
    dt_error_clear(&e);
    dt_system_free(s);
}

/* ---- what can start ---- */

static void jobs_as_submitted_can_start_or_never(void **state)
{
    static const struct {
        const char *words[7];
        const char *why; /* begins with; NULL: it starts */
    } cases[] = {
        {{"ntasks=40"}, NULL}, /* 3 x 8 + 4 x 4 */
        {{"ntasks=41"}, "more CPUs"},
        {{"ntasks=1", "cpus-per-task=8"}, NULL},
        {{"ntasks=1", "cpus-per-task=9"}, "more CPUs"},
        {{"nodes=8"}, "more CPUs"}, /* one of them is down */
        {{"nodes=9"}, "more CPUs"},
        {{"nodes=7"}, NULL},
        {{"nodes=7", "ntasks=40"}, NULL},
        {{"nodes=2", "ntasks=17"}, "more CPUs"},
        {{"nodes=4", "ntasks-per-node=8"}, "more CPUs"},
        {{"ntasks=4", "mem-per-cpu=4G"}, NULL},
        {{"ntasks=11", "mem-per-cpu=4G"}, "more CPUs"},
        {{"nodes=3", "mem=8G"}, NULL},
        {{"nodes=4", "mem=8G"}, "more CPUs"},
        {{"nodes=4", "mem=4G"}, NULL},
        {{"nodes=7", "mem=0"}, NULL},
        {{"gres=gpu:4"}, NULL},
        {{"gres=gpu:a:3"}, "more CPUs"},
        {{"gres=gpu:a:2,nic:1"}, NULL},
        {{"gres=nic:2"}, "more CPUs"},
        {{"gpus-per-task=b:1", "ntasks=6"}, NULL},
        {{"gpus-per-task=b:1", "ntasks=7"}, "more CPUs"},
        {{"gpus=12"}, NULL},
        {{"gpus=13"}, "more CPUs"},
        {{"gpus-per-node=2", "nodes=3", "mem-per-gpu=4G"}, NULL},
        {{"gpus-per-node=2", "nodes=3", "mem-per-gpu=5G"}, "more CPUs"},
        {{"gpus-per-task=1", "mem-per-gpu=4G", "ntasks=6"}, NULL},
        {{"gpus-per-task=1", "mem-per-gpu=4G", "ntasks=7"}, "more CPUs"},
        {{"gpus-per-task=3", "mem-per-gpu=4G", "ntasks=3"}, "more CPUs"},
        {{"gpus-per-task=3", "mem-per-gpu=4G", "nodes=2", "ntasks-per-node=1"}, "more CPUs"},
        {{"gpus-per-task=1", "cpus-per-gpu=3", "ntasks=6"}, NULL},
        {{"gpus-per-task=1", "cpus-per-gpu=3", "ntasks=7"}, "more CPUs"},
        {{"gpus=2", "nodes=8", "ntasks=1"}, NULL}, /* which is one node */
        {{"gpus=1", "ntasks=10"}, NULL},           /* and which is two, the GPU on one of them */
        {{"gpus=1", "ntasks=10", "nodes=1"}, "more CPUs"},
        {{"gpus-per-task=1", "nodes=3"}, NULL}, /* with a task each */
        {{"gpus-per-task=1", "nodes=1-3"}, "sbatch refuses"},
        {{"gpus-per-task=1", "nodes=3", "cpus-per-task=1"}, "sbatch refuses"},
        {{"gpus-per-task=1", "nodes=3", "cpus-per-task=1", "ntasks-per-node=1"}, NULL},
        {{"gpus=6", "cpus-per-gpu=3"}, NULL},
        {{"gpus=7", "cpus-per-gpu=3"}, "more CPUs"}, /* though there are 12 */
        {{"tmp=1G"}, NULL},
        {{"tmp=1025M"}, "more CPUs"},
        {{"licenses=m:4"}, NULL},
        {{"licenses=m:5"}, "more licences"},
        {{"licenses=x"}, "more licences"},
        {{"ntasks-per-core=1", "ntasks=28"}, NULL}, /* 3 x 4 + 4 x 4 cores */
        {{"ntasks-per-core=1", "ntasks=29"}, "more CPUs"},
        {{"extra-node-info=2:2", "ntasks=24"}, NULL},
        {{"extra-node-info=2:3"}, "more CPUs"},
        {{"exclusive", "mem-per-cpu=1G", "ntasks=2"}, NULL},
        {{"exclusive", "mem-per-cpu=1100M", "ntasks=2"},
         "more CPUs"}, /* times all CPUs of a node */
        {{"overcommit", "ntasks=1000"}, NULL},
        {{"time=61"}, "limits: a longer --time"},
        {{"gpus=3", "account=b"}, NULL},
        {{"ntasks=5", "account=b"}, "limits: more CPUs"},
        {{"partition=short", "time=11"}, "partition: it allows less"},
        {{"partition=short", "nodes=3"}, "partition: it allows fewer nodes"},
        {{"partition=short,main", "time=11"}, NULL},
        {{"partition=short", "ntasks=6"}, NULL},
        {{"partition=short", "ntasks=7"}, "more CPUs"}, /* 6 CPUs a node, and QOS few: one node */
        {{"partition=short", "ntasks=3", "mem-per-cpu=1500M"}, NULL}, /* which is 6 CPUs of 750M */
        {{"partition=short", "ntasks=4", "mem-per-cpu=1500M"}, "more CPUs"},
        {{"partition=short", "nodes=2"}, "limits: more nodes"},
    };
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_submission *sub = submission(cases[i].words);
        struct dt_cluster *c = dt_job_cluster(s, sub, false, &e);
        struct dt_job job;
        if (!c || dt_job_read(sub, &job, &e) < 0)
            fail_msg("case %zu: %s", i, e.text);
        size_t bound = c->nbinding;
        if (!dt_starts_with(cases[i].why ? cases[i].why : "", "limits") &&
            !strstr(cases[i].words[0], "short"))
            c->nbinding = 0; /* the others are about nodes */
        const char *why = dt_feasible_why_not(c, NULL, &job.given, 1);
        if (!why != !cases[i].why || (why && !dt_starts_with(why, cases[i].why)))
            fail_msg("case %zu: %s: %s", i, cases[i].words[0], why ? why : "starts");
        dt_job_free(&job);
        c->nbinding = bound;
        dt_cluster_free(c);
        dt_submission_free(sub);
    }
    dt_system_free(s);
}

/* A QOS comes before associations, one that has no limit leaves theirs; accounts only limit groups.
 */
static void limits_come_in_slurms_order(void **state)
{
    static const char text[] =
        "{\"version\": 1, \"kinds\": [{\"cpus\": 64, \"mem\": 65536, \"partitions\": \"p,q,r,s,t,v\", \"nodes\": "
        "[{\"state\": \"idle\", \"names\": \"n1\", \"usable\": true}]}],"
        " \"partitions\": [{\"name\": \"p\", \"state\": \"up\", \"preset\": true},"
        " {\"name\": \"q\", \"state\": \"up\", \"allow_accounts\": \"b,c\", \"deny_qos\": \"wide\"},"
        " {\"name\": \"r\", \"state\": \"up\", \"allow_accounts\": \"a\", \"deny_qos\": \"wide\"},"
        " {\"name\": \"s\", \"state\": \"up\", \"allow_groups\": \"staff\", \"foreign\": true},"
        " {\"name\": \"t\", \"state\": \"up\", \"root_only\": true, \"foreign\": true},"
        " {\"name\": \"v\", \"state\": \"up\", \"root_only\": true, \"allow_groups\": \"staff\"}"
        "], \"limits\": ["
        "  {\"who\": \"u\", \"user\": \"u\", \"account\": \"a\", \"preset\": true, \"per_job\": {\"cpu\": 8, \"node\": 1},"
        "   \"jobs\": 5},"
        "  {\"who\": \"a\", \"account\": \"a\", \"parent\": \"root\", \"per_job\": {\"cpu\": 4}, \"jobs\": 0,"
        "   \"group\": {\"cpu\": 20, \"mem\": 1000}},"
        "  {\"who\": \"root\", \"account\": \"root\", \"group\": {\"cpu\": 12}},"
        "  {\"who\": \"wide\", \"qos\": \"wide\", \"is_qos\": true, \"per_job\": {\"cpu\": 32}, \"group\": "
        "   {\"cpu\": 40}}]}";
    static const struct {
        const char *words[4];
        const char *why;
    } cases[] = {
        {{"ntasks=8", "mem=100"}, NULL},
        {{"ntasks=9", "mem=100"},
         "limits: more CPUs than a job"}, /* the user's, not the account's 4 */
        {{"ntasks=32", "qos=wide", "mem=100"}, NULL},
        {{"ntasks=33", "qos=wide", "mem=100"}, "limits: more CPUs than a job"},
        {{"ntasks=8", "mem=1001", "qos=wide"}, "limits: more memory than your jobs"},
        {{"mem=100", "partition=q"}, "partition: it is not open to the job's account"},
        {{"mem=100", "partition=q,p"}, NULL},
        {{"mem=100", "partition=r"}, NULL},
        {{"mem=100", "partition=r", "qos=wide"}, "partition: it is not open to the job's QOS"},
        {{"mem=100", "partition=s"}, "partition: you are in none of its groups"},
        {{"mem=100", "partition=s,p"}, NULL},
        {{"mem=100", "partition=s,t"}, "partition: you are in none of its groups"},
        {{"mem=100", "partition=t"}, "partition: it is open to root only"},
        {{"mem=100", "partition=v"}, NULL},
    };
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(text, &e);
    (void)state;
    if (!s)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_submission *sub = submission(cases[i].words);
        struct dt_cluster *c = dt_job_cluster(s, sub, false, &e);
        struct dt_job job;
        assert_int_equal(dt_job_read(sub, &job, &e), 0);
        const char *why = dt_feasible_why_not(c, NULL, &job.given, 1);
        if (!why != !cases[i].why || (why && !dt_starts_with(why, cases[i].why)))
            fail_msg("case %zu: %s", i, why ? why : "starts");
        dt_job_free(&job);
        dt_cluster_free(c);
        dt_submission_free(sub);
    }
    dt_system_free(s);
}

/* What Slurm does, not what would be possible: it fills the nodes of little weight first, component
 * by component. */
static void components_take_nodes_in_slurms_order(void **state)
{
    struct json_object *o =
        dt_json_parse("{\"nodes\": [{\"count\": 1, \"cpus\": 8, \"mem\": 1, \"weight\": 1},"
                      "{\"count\": 1, \"cpus\": 4, \"mem\": 1, \"weight\": 2}]}",
                      "c", NULL);
    struct dt_cluster *c = dt_cluster_from_json(o, NULL);
    const struct dt_request small_first[] = {{.tasks = 2, .cpus = 1}, {.tasks = 8, .cpus = 1}};
    const struct dt_request large_first[] = {{.tasks = 8, .cpus = 1}, {.tasks = 2, .cpus = 1}};
    (void)state;
    assert_ptr_equal(dt_feasible_why_not(c, NULL, small_first, 2), dt_not_apart);
    assert_null(dt_feasible_why_not(c, NULL, large_first, 2));
    c->backfill = false;
    assert_string_equal(dt_feasible_why_not(c, NULL, large_first, 2),
                        "heterogeneous jobs need the backfill scheduler");
    dt_cluster_free(c);
    json_object_put(o);
}

/* The nodes of a job in clusters whose jobs Slurm 22.05 was seen to start, or not. */
#define SMALL_FIRST                                                                                \
    "{\"nodes\": [{\"count\": 3, \"cpus\": 4, \"mem\": 4096, \"weight\": 4, \"order\": 1},"        \
    "{\"count\": 2, \"cpus\": 8, \"mem\": 4096, \"weight\": 8, \"order\": 2}]}"
#define TWO_THREADS                                                                                  \
    "{\"scheduling\": {\"memory\": true, \"cores\": true}, \"nodes\": [{\"count\": 3, \"cpus\": 8, " \
    "\"mem\": 4096, \"sockets\": 2, \"cores\": 2, \"threads\": 2}]}"
#define MEM_PER_CPU                                                                                         \
    "{\"nodes\": [{\"count\": 3, \"cpus\": 4, \"mem\": 4096}, {\"count\": 2, \"cpus\": 8, \"mem\": 4096}]," \
    "\"max_mem_per_cpu\": 700, \"first_cpus\": 4}"
#define WITH_GPUS                                                                                  \
    "{\"nodes\": [{\"count\": 2, \"cpus\": 3, \"mem\": 4096, \"gpus\": 2, \"gres\": \"gpu:a:2\"}]}"
#define LITTLE_MEMORY                                                                              \
    "{\"nodes\": [{\"count\": 1, \"cpus\": 8, \"mem\": 8192, \"gpus\": 4, \"gres\": \"gpu:a:4\"}," \
    "{\"count\": 1, \"cpus\": 4, \"mem\": 4096, \"gpus\": 2, \"gres\": \"gpu:b:2\"}]}"
#define GAP(places)                                                                                \
    "{\"nodes\": [{\"count\": 2, \"cpus\": 4, \"mem\": 4096, \"places\": \"1-2\"},"                \
    "{\"count\": 3, \"cpus\": 2, \"mem\": 4096, \"places\": \"" places "\"}]}"

static void tasks_start_with_the_cpus_that_their_nodes_give(void **state)
{
    static const struct {
        const char *cluster;
        struct dt_request jobs[2];
        const char *why; /* begins with; NULL: it starts */
    } cases[] = {
        /* 12 CPUs of three nodes, which are no four tasks of 3 */
        {SMALL_FIRST, {{.tasks = 4, .cpus = 3}}, dt_torn},
        {SMALL_FIRST, {{.tasks = 4, .cpus = 3, .whole_nodes = true}}, NULL}, /* two share CPUs */
        {SMALL_FIRST,
         {{.tasks = 4, .cpus = 3, .whole_nodes = true, .memory = DT_MEMORY_NODE, .mem_mib = 2684},
          {.tasks = 2,
           .cpus = 3,
           .whole_nodes = true,
           .nodes = 2,
           .nodes_max = 2,
           .tasks_per_node = 1,
           .memory = DT_MEMORY_NODE,
           .mem_mib = 2684}},
         NULL},
        /* the last node could hold two, but gives no more than the CPUs that are lacking */
        {SMALL_FIRST, {{.tasks = 5, .cpus = 3}}, dt_torn},
        {SMALL_FIRST, {{.tasks = 7, .cpus = 3}}, dt_torn},
        {SMALL_FIRST, {{.tasks = 8, .cpus = 3, .whole_nodes = true}}, NULL},
        {SMALL_FIRST, {{.tasks = 2, .cpus = 6}}, NULL},
        /* as many nodes as it may have, each for a task at least */
        {SMALL_FIRST, {{.tasks = 5, .cpus = 3, .nodes = 1, .nodes_max = 5}}, NULL},
        {SMALL_FIRST, {{.tasks = 6, .cpus = 3, .nodes = 1, .nodes_max = 4}}, dt_torn},
        /* cores of two threads, which are given out whole, make good what is lacking */
        {TWO_THREADS, {{.tasks = 3, .cpus = 5, .nodes = 2, .nodes_max = 2}}, dt_torn},
        {TWO_THREADS, {{.tasks = 4, .cpus = 5}}, NULL},
        /* beside GRES the CPUs of whole tasks count alone */
        {WITH_GPUS, {{.tasks = 3, .cpus = 2, .whole_nodes = true}}, NULL},
        {WITH_GPUS,
         {{.tasks = 3, .cpus = 2, .whole_nodes = true, .gpus_per_node = 1}},
         "more CPUs"},
        {WITH_GPUS, {{.tasks = 2, .cpus = 2, .whole_nodes = true, .gpus_per_node = 1}}, NULL},
        {WITH_GPUS, {{.tasks = 4, .gpus = 3, .cpus_per_gpu = 1}}, NULL}, /* or those of GPUs */
        {WITH_GPUS, {{.tasks = 5, .gpus = 3, .cpus_per_gpu = 1}}, "more CPUs"},
        /* memory is enough for 3 and 1 of the GPUs, which is 4 of all, not 2 of each */
        {LITTLE_MEMORY,
         {{.tasks = 2,
           .gpus_per_task = 2,
           .nodes = 2,
           .nodes_max = 2,
           .memory = DT_MEMORY_GPU,
           .mem_mib = 2550}},
         NULL},
        {LITTLE_MEMORY,
         {{.tasks = 2,
           .gpus_per_task = 2,
           .nodes = 2,
           .nodes_max = 2,
           .memory = DT_MEMORY_GPU,
           .mem_mib = 2800}},
         "more CPUs"},
        /* memory of a whole node is judged by the first node's CPUs where no CPUs are added for it
         */
        {MEM_PER_CPU,
         {{.tasks = 1, .cpus = 6, .whole_nodes = true, .memory = DT_MEMORY_NODE, .mem_mib = 3774}},
         "partition: it allows less memory a CPU"},
        {MEM_PER_CPU,
         {{.tasks = 1, .cpus = 5, .whole_nodes = true, .memory = DT_MEMORY_NODE, .mem_mib = 3774}},
         NULL},
        {MEM_PER_CPU, {{.tasks = 1, .cpus = 6, .memory = DT_MEMORY_NODE, .mem_mib = 3774}}, NULL},
        /* as many tasks as a core may have must fit on each node */
        {WITH_GPUS, {{.tasks = 2, .cpus = 2, .tasks_per_core = 2}}, "more CPUs"},
        {WITH_GPUS, {{.tasks = 2, .cpus = 2, .tasks_per_core = 1}}, NULL},
        {WITH_GPUS, {{.tasks = 4, .cpus = 1, .tasks_per_core = 4}}, "more CPUs"},
        /* of two sets of neighbours the smaller, which the second one needs; of one set its first
         */
        {GAP("4-6"),
         {{.tasks = 3, .cpus = 2}, {.tasks = 3, .cpus = 1, .nodes = 3, .nodes_max = 3}},
         dt_not_apart},
        {GAP("3-5"),
         {{.tasks = 3, .cpus = 2}, {.tasks = 3, .cpus = 1, .nodes = 3, .nodes_max = 3}},
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_error e = DT_ERROR_INIT;
        struct json_object *o = dt_json_parse(cases[i].cluster, "c", &e);
        struct dt_cluster *c = dt_cluster_from_json(o, &e);
        if (!c)
            fail_msg("case %zu: %s", i, e.text);
        c->backfill = true;
        const char *why =
            dt_feasible_why_not(c, NULL, cases[i].jobs, cases[i].jobs[1].tasks ? 2 : 1);
        if (!why != !cases[i].why || (why && !dt_starts_with(why, cases[i].why)))
            fail_msg("case %zu: %s", i, why ? why : "starts");
        dt_cluster_free(c);
        json_object_put(o);
    }
}

/* Those that are excluded are gaps in it. */
static void nodes_keep_their_places_in_slurms_table(void **state)
{
    static const struct {
        const char *words[3], *places;
    } cases[] = {
        {{"exclude=n9"}, "6-7,9-10"}, {{"exclude=n5,n7"}, "7,10"}, {{"exclude=n[1-6]"}, "9-10"}};
    struct dt_error e = DT_ERROR_INIT;
    struct dt_system *s = system_of(small, &e);
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dt_submission *sub = submission(cases[i].words);
        struct dt_cluster *c = dt_job_cluster(s, sub, false, &e);
        struct json_object *o = dt_cluster_to_json(c);
        char *text = dt_json_text(o), *wanted = dt_xasprintf("\"places\":\"%s\"", cases[i].places);
        if (!strstr(text, wanted))
            fail_msg("case %zu: %s", i, text);
        free(wanted);
        free(text);
        json_object_put(o);
        dt_cluster_free(c);
        dt_submission_free(sub);
    }
    dt_system_free(s);
}

static void the_tuning_job_counts_for_limits(void **state)
{
    struct json_object *o = dt_json_parse(
        "{\"nodes\": [{\"count\": 4, \"cpus\": 4, \"mem\": 4096}], \"tuner_jobs\": 1, \"limits\": "
        "[{\"who\": \"a\", \"jobs\": 2, \"group\": {\"cpu\": 5}}]}",
        "c", NULL);
    struct dt_cluster *c = dt_cluster_from_json(o, NULL);
    const struct dt_request four = {.tasks = 4, .cpus = 1}, five = {.tasks = 5, .cpus = 1};
    const struct dt_request two[] = {{.tasks = 1, .cpus = 1}, {.tasks = 1, .cpus = 1}};
    (void)state;
    assert_null(dt_feasible_why_not(c, NULL, &four, 1));
    assert_non_null(dt_feasible_why_not(c, NULL, &five, 1));
    assert_non_null(dt_feasible_why_not(c, NULL, two, 2)); /* three jobs */
    c->tuner_jobs = 0;
    assert_null(dt_feasible_why_not(c, NULL, &five, 1));
    assert_null(dt_feasible_why_not(c, NULL, two, 2));
    dt_cluster_free(c);
    json_object_put(o);
}

/* ---- a large one ---- */

/* 10,000 nodes in 40 kinds. The caller frees. */
static char *large_system(void)
{
    struct dt_buf b = DT_BUF_INIT;
    dt_buf_add(
        &b,
        "{\"version\": 1, \"backfill\": true, \"scheduling\": {\"memory\": true, \"cores\": true}, \"kinds\": [");
    for (int i = 0; i < 40; i++)
        dt_buf_addf(
            &b,
            "%s{\"cpus\": %d, \"mem\": %d, \"tmp\": 1000, \"gpus\": %d, \"sockets\": 2, \"cores\": %d, "
            "\"threads\": 1, \"weight\": %d, \"features\": \"k%d\", \"gres\": \"gpu:t:%d\", \"partitions\": "
            "\"main\", \"nodes\": [{\"state\": \"idle\", \"names\": \"k%dn[001-250]\", \"usable\": true}]}",
            i ? ", " : "", 16 + 2 * i, 65536 + 4096 * i, i % 9, 8 + i, i % 4 + 1, i, i % 9, i);
    dt_buf_add(
        &b,
        "], \"partitions\": [{\"name\": \"main\", \"state\": \"up\", \"preset\": true, \"def_mem_per_cpu\": 1024}]}");
    return dt_buf_take(&b);
}

static void a_space_on_ten_thousand_nodes_is_small(void **state)
{
    static const char spec_text[] =
        "{\"dt\": {\"ps\": {\"low\": 0, \"high\": 16}, \"workers\": {\"low\": 1, \"high\": 256}, \"worker_cpus\": "
        "{\"choices\": [1, 2, 4, 8, 16]}}}";
    struct dt_error e = DT_ERROR_INIT;
    struct rusage before, after;
    const char *why;
    char *text = large_system();
    (void)state;
    getrusage(RUSAGE_SELF, &before);
    struct dt_system *s = system_of(text, &e);
    struct dt_submission *sub = submission((const char *[]){"ntasks=4", NULL});
    struct dt_cluster *c = dt_job_cluster(s, sub, true, &e);
    struct json_object *doc = dt_json_parse(spec_text, "S", &e);
    struct dt_spec *spec = dt_spec_parse(doc, spec_text, "S", &e);
    struct dt_job job;
    assert_int_equal(dt_job_read(sub, &job, &e), 0);
    struct dt_space_source source = {spec, &job, c};
    struct dt_space *space = dt_space_generate(&source, &why, &e);
    getrusage(RUSAGE_SELF, &after);
    assert_non_null(space);
    assert_int_equal(dt_cluster_nodes(c), 10000);
    assert_int_equal(space->npoints, (size_t)256 * 5 * (1 + 2 * 16));
    print_message("# %ld MiB more at the most, %.2f s\n",
                  (after.ru_maxrss - before.ru_maxrss) / 1024,
                  (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                      1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec));
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(after.ru_maxrss < 100 * 1024);
#endif
    dt_space_free(space);
    dt_job_free(&job);
    dt_spec_free(spec);
    json_object_put(doc);
    dt_cluster_free(c);
    dt_submission_free(sub);
    dt_system_free(s);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_goes_through_json_unchanged),
        cmocka_unit_test(faulty_files_are_told_with_their_place),
        cmocka_unit_test(the_picture_names_everything_in_100_columns),
        cmocka_unit_test(a_part_of_a_system_is_that_alone),
        cmocka_unit_test(a_job_may_use_its_partition_and_is_bound_by_its_limits),
        cmocka_unit_test(jobs_as_submitted_can_start_or_never),
        cmocka_unit_test(limits_come_in_slurms_order),
        cmocka_unit_test(components_take_nodes_in_slurms_order),
        cmocka_unit_test(tasks_start_with_the_cpus_that_their_nodes_give),
        cmocka_unit_test(nodes_keep_their_places_in_slurms_table),
        cmocka_unit_test(the_tuning_job_counts_for_limits),
        cmocka_unit_test(a_space_on_ten_thousand_nodes_is_small),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
