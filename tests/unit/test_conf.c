/* dt-tune.conf: what is read, what is refused and how, and what the tools make of it. */
#include "conf/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static char *folder, *path; /* of the file, beside the SLURM_CONF that is set */

static void write_conf(const char *text)
{
    assert_int_equal(dt_write_file(path, text, strlen(text), 0644, NULL), 0);
}

static void all_keys_are_read(void **state)
{
    struct dt_conf c;
    char *why = NULL;
    (void)state;
    assert_int_equal(dt_conf_parse("# ours\n"
                                   "\n"
                                   "  refuse = \"closed # today\"   # till Monday\n"
                                   "AllowUsers=alice , bob,carol\r\n"
                                   "AllowGroups=hpc\n"
                                   "ALLOWACCOUNTS=phys\n"
                                   "MaxParallel=8\n"
                                   "MaxConfigs=40\n"
                                   "MaxNodeHours=12.5\n"
                                   "TunerPartition=tuners\n"
                                   "TunerMemory=1G\n"
                                   "TunerTime=1-0\n"
                                   "History=/shared/history/%u",
                                   &c, &why),
                     0);
    assert_null(why);
    assert_string_equal(c.refuse, "closed # today");
    assert_string_equal(c.users, "alice,bob,carol");
    assert_string_equal(c.groups, "hpc");
    assert_string_equal(c.accounts, "phys");
    assert_int_equal(c.parallel, 8);
    assert_int_equal(c.configs, 40);
    assert_true(c.node_hours == 12.5);
    assert_string_equal(c.tuner_partition, "tuners");
    assert_int_equal(c.tuner_mem_mib, 1024);
    assert_int_equal(c.tuner_time_min, 1440);
    assert_string_equal(c.history, "/shared/history/%u");
    assert_true(dt_conf_has(c.users, "bob"));
    assert_true(dt_conf_has(c.users, "carol"));
    assert_false(dt_conf_has(c.users, "bo"));
    assert_false(dt_conf_has(c.users, "bobb"));
    assert_false(dt_conf_has(c.users, ""));
    dt_conf_free(&c);
}

static void wrong_lines_are_named(void **state)
{
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"\nMaxParallel\n", "line 2: Key=Value"},
        {"MaxParalel=2", "line 1: there is no key \"MaxParalel\"; there are Refuse"},
        {"=2", "no key \"\""},
        {"MaxParallel=0", "MaxParallel=0: a whole number from 1"},
        {"MaxParallel=-1", "a whole number from 1"},
        {"MaxParallel=2x", "a whole number from 1"},
        {"MaxConfigs=99999999999999999999", "a whole number from 1"},
        {"MaxNodeHours=0", "a number of hours above 0"},
        {"MaxNodeHours=nan", "a number of hours above 0"},
        {"TunerMemory=0", "an amount of memory"},
        {"TunerMemory=9999999T", "an amount of memory"},
        {"TunerTime=0:30", "a time"},
        {"TunerTime=UNLIMITED", "a time"},
        {"AllowUsers=a,,b", "names with commas"},
        {"AllowUsers=a b", "names with commas"},
        {"AllowUsers=,", "names with commas"},
        {"History=history", "begins with /"},
        {"Refuse=", "line 1: Refuse has no value"},
        {"Refuse=\"a", "quotes"},
        {"Refuse=a\"b\"", "quotes"},
        {"Refuse=a\tb", "a text"},
        {"MaxParallel=2\nmaxparallel=2", "line 2: MaxParallel is given twice"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct dt_conf c = {.parallel = 77};
        char *why = NULL;
        assert_int_equal(dt_conf_parse(bad[i].text, &c, &why), -1);
        if (!strstr(why, bad[i].word) || strchr(why, '\n'))
            fail_msg("%s: unexpected: %s", bad[i].text, why);
        assert_int_equal(c.parallel, 77);
        free(why);
    }
}

static void files_that_are_none(void **state)
{
    struct dt_conf c = {.parallel = 5};
    char *why = NULL;
    (void)state;
    unlink(path);
    assert_int_equal(dt_conf_load(path, &c, &why), 0);
    assert_int_equal(c.parallel, 0);
    assert_int_equal(dt_conf_load(folder, &c, &why), -1);
    assert_non_null(strstr(why, "a file of less than"));
    free(why);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for a writer */
    assert_int_equal(dt_conf_load(path, &c, &why), -1);
    free(why);
    unlink(path);
    char *large = dt_xcalloc(1, 70000);
    memset(large, '#', 69999);
    write_conf(large);
    assert_int_equal(dt_conf_load(path, &c, &why), -1);
    free(why);
    free(large);
    assert_int_equal(dt_write_file(path, "MaxConfigs=3\0", 13, 0644, NULL), 0);
    assert_int_equal(dt_conf_load(path, &c, &why), -1);
    assert_non_null(strstr(why, "no text"));
    free(why);
}

/* What becomes of a SPEC, or what is said; caller frees. */
static char *limited(const char *spec)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_conf c = {0};
    struct json_object *doc = dt_json_parse(spec, "spec.json", &e);
    assert_int_equal(dt_conf_read(&c, &e), 0);
    char *text =
        dt_conf_limit(&c, doc, "spec.json", &e) < 0 ? dt_xstrdup(e.text) : dt_json_text(doc);
    dt_error_clear(&e);
    dt_conf_free(&c);
    json_object_put(doc);
    return text;
}

static void check_limited(const char *spec, const char *want)
{
    char *text = limited(spec);
    assert_string_equal(text, want);
    free(text);
}

static void check_too_much(const char *spec, const char *word)
{
    char *text = limited(spec);
    if (!strstr(text, word) || !dt_starts_with(text, path))
        fail_msg("unexpected: %s", text);
    free(text);
}

static void limits_of_a_study(void **state)
{
    (void)state;
    unlink(path);
    check_limited("{\"dt\":{},\"search\":{}}", "{\"dt\":{},\"search\":{}}");
    check_limited("{\"search\":{\"parallel\":9}}", "{\"search\":{\"parallel\":9}}");
    write_conf("MaxConfigs=70\nMaxParallel=4\n"); /* more than a search does by itself */
    check_limited("{\"dt\":{}}", "{\"dt\":{}}");
    write_conf("MaxConfigs=30\nMaxParallel=4\nMaxNodeHours=2.5\n");
    check_limited("{}", "{\"search\":{\"max_configs\":30,\"max_node_hours\":2.5}}");
    check_limited("{\"search\":{\"max_configs\":20,\"parallel\":4,\"max_node_hours\":1}}",
                  "{\"search\":{\"max_configs\":20,\"parallel\":4,\"max_node_hours\":1}}");
    check_limited("{\"layout\":\"steps\",\"search\":{\"max_configs\":9,\"max_node_hours\":1}}",
                  "{\"layout\":\"steps\",\"search\":{\"max_configs\":9,\"max_node_hours\":1,"
                  "\"parallel\":4}}");
    check_limited("{\"search\":{\"parallel\":\"auto\",\"max_configs\":9,\"max_node_hours\":1}}",
                  "{\"search\":{\"parallel\":4,\"max_configs\":9,\"max_node_hours\":1}}");
    check_too_much("{\"search\":{\"parallel\":5}}",
                   "MaxParallel=4, and spec.json asks for search.parallel 5; ask for less");
    check_too_much("{\"search\":{\"max_configs\":31}}", "MaxConfigs=30");
    check_too_much("{\"search\":{\"max_node_hours\":2.6}}", "MaxNodeHours=2.5");
    /* What is wrong otherwise is said by SPEC's own reader. */
    check_limited("{\"search\":3}", "{\"search\":3}");
    check_limited("{\"search\":null}", "{\"search\":null}");
    check_limited("{\"search\":{\"max_configs\":null,\"max_node_hours\":1}}",
                  "{\"search\":{\"max_configs\":null,\"max_node_hours\":1}}");
}

static void who_may_tune(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_conf c;
    const struct passwd *me = getpwuid(getuid());
    const struct group *mine = getgrgid(getgid());
    (void)state;
    if (!me || !mine)
        skip();
    char *user = dt_xasprintf("AllowUsers=nobody-else,%s\nAllowAccounts=a,b\n", me->pw_name),
         *group = dt_xasprintf("AllowUsers=nobody-else\nAllowGroups=%s\n", mine->gr_name);
    write_conf(user);
    assert_int_equal(dt_conf_read(&c, &e), 0);
    assert_int_equal(dt_conf_may_tune(&c, "b", &e), 0);
    assert_int_equal(dt_conf_may_tune(&c, "ab", &e), -1);
    assert_non_null(strstr(e.text, "AllowAccounts=a,b, and account ab"));
    assert_int_equal(dt_conf_may_tune(&c, NULL, &e), -1);
    assert_non_null(strstr(e.text, "--account"));
    dt_conf_free(&c);
    write_conf(group);
    assert_int_equal(dt_conf_read(&c, &e), 0);
    assert_int_equal(dt_conf_may_tune(&c, NULL, &e), 0);
    dt_conf_free(&c);
    write_conf("AllowUsers=nobody-else\nAllowGroups=no-such-group\n");
    assert_int_equal(dt_conf_read(&c, &e), 0);
    assert_int_equal(dt_conf_may_tune(&c, NULL, &e), -1);
    assert_true(dt_starts_with(e.text, path));
    assert_non_null(strstr(e.text, "AllowUsers=nobody-else and AllowGroups=no-such-group"));
    dt_conf_free(&c);
    write_conf("Refuse=no\n");
    assert_int_equal(dt_conf_read(&c, &e), 0);
    assert_int_equal(dt_conf_may_tune(&c, NULL, &e), -1);
    assert_non_null(strstr(e.text, "Refuse=no"));
    dt_conf_free(&c);
    write_conf("nonsense\n");
    assert_int_equal(dt_conf_read(&c, &e), -1);
    assert_true(dt_starts_with(e.text, path));
    assert_non_null(strstr(e.text, "administrator"));
    dt_error_clear(&e);
    free(user);
    free(group);
}

static void folder_of_the_history(void **state)
{
    const struct passwd *me = getpwuid(getuid());
    (void)state;
    if (!me)
        skip();
    unlink(path);
    assert_null(dt_conf_history());
    write_conf("History=/h/%u/%ux\n");
    char *want = dt_xasprintf("/h/%s/%sx", me->pw_name, me->pw_name), *got = dt_conf_history();
    assert_string_equal(got, want);
    free(got);
    free(want);
    write_conf("History=/h\n");
    got = dt_conf_history();
    assert_string_equal(got, "/h");
    free(got);
}

static int make_folder(void **state)
{
    char name[] = "/tmp/dt-test-conf.XXXXXX";
    (void)state;
    folder = dt_xstrdup(mkdtemp(name));
    path = dt_xasprintf("%s/dt-tune.conf", folder);
    char *slurm = dt_xasprintf("%s/slurm.conf", folder);
    setenv("SLURM_CONF", slurm, 1);
    free(slurm);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    rmdir(folder);
    free(path);
    free(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_keys_are_read),   cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(files_that_are_none), cmocka_unit_test(limits_of_a_study),
        cmocka_unit_test(who_may_tune),        cmocka_unit_test(folder_of_the_history),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
