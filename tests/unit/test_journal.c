/* journal: records survive, torn ones go, damage and second writers are refused. */
#include "tuner/tuner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char *path;

static int collect(void *arg, struct json_object *record, struct dt_error *e)
{
    if (dt_json_int(record, "n", 0) == 13)
        return dt_fail(e, "13 is not liked");
    dt_strv_take(arg, dt_json_text(record));
    return 0;
}

static struct dt_journal *open_journal(struct dt_strv *records, struct dt_error *e)
{
    dt_strv_free(records);
    return dt_journal_open(path, collect, records, e);
}

static int append(struct dt_journal *j, const char *text, struct dt_error *e)
{
    struct json_object *o = dt_json_parse(text, "record", e);
    int rc = dt_journal_append(j, o, e);
    json_object_put(o);
    return rc;
}

static void put_file(const char *data, size_t len)
{
    assert_int_equal(dt_write_file(path, data, len, 0600, NULL), 0);
}

/* `text` is without the checks that records were written with. */
static void expect_file(const char *text)
{
    size_t len;
    char *data = dt_read_file(path, 1 << 20, &len, NULL), *check;
    while ((check = strstr(data, ",\"crc\":\"")))
        memmove(check, check + 17, strlen(check + 17) + 1);
    assert_string_equal(data, text);
    free(data);
}

static void records_are_there_after_reopening(void **state)
{
    struct dt_strv records = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    struct dt_journal *j = open_journal(&records, &e);
    (void)state;
    assert_non_null(j);
    assert_int_equal(append(j, "{\"n\": 1, \"text\": \"two\\nlines / \xc3\xbc\"}", &e), 0);
    assert_int_equal(append(j, "{\"n\": 2}", &e), 0);
    dt_journal_close(j);
    expect_file("{\"n\":1,\"text\":\"two\\nlines / \xc3\xbc\"}\n{\"n\":2}\n");
    j = open_journal(&records, &e);
    assert_int_equal(records.n, 2);
    assert_string_equal(records.v[0], "{\"n\":1,\"text\":\"two\\nlines / \xc3\xbc\"}");
    assert_int_equal(append(j, "{\"n\": 3}", &e), 0);
    dt_journal_close(j);
    j = open_journal(&records, &e);
    assert_int_equal(records.n, 3);
    dt_journal_close(j);
    dt_journal_close(NULL);
    dt_strv_free(&records);
}

static void a_torn_last_record_is_cut_off(void **state)
{
    static const struct {
        const char *data;
        size_t len;
    } tails[] = {{"{\"n\":2", 6}, {"{", 1}, {"{\"n\":2}", 7}, {"\0\0\0\0", 4}};
    (void)state;
    for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
        struct dt_strv records = DT_STRV_INIT;
        struct dt_error e = DT_ERROR_INIT;
        struct dt_buf b = DT_BUF_INIT;
        dt_buf_add(&b, "{\"n\":1}\n");
        dt_buf_addn(&b, tails[i].data, tails[i].len);
        put_file(b.s, b.len);
        struct dt_journal *j = open_journal(&records, &e);
        assert_non_null(j);
        assert_int_equal(records.n, 1);
        assert_int_equal(append(j, "{\"n\": 3}", &e), 0);
        dt_journal_close(j);
        expect_file("{\"n\":1}\n{\"n\":3}\n");
        dt_buf_free(&b);
        dt_strv_free(&records);
    }
}

#define LAST3 "{\"n\":3}\n{\"n\":4}\n{\"n\":5}\n"
#define CASE(data, error)                                                                          \
    {                                                                                              \
        data, sizeof(data) - 1, error                                                              \
    }

static void damage_in_the_middle_is_refused_and_nothing_is_lost(void **state)
{
    static const struct {
        const char *data;
        size_t len;
        const char *error;
    } cases[] = {
        CASE("{\"n\":1}\n{\"n\":\n" LAST3, ":2: the journal is damaged: record:1: not valid JSON"),
        CASE("{\"n\":1}\n\n" LAST3, ":2: the journal is damaged: "),
        CASE("{\"n\":1}\n\0\0\0\n" LAST3, ":2: the journal is damaged: "),
        CASE("{\"n\":1}\n{\"n\":2,\"crc\":\"00000000\"}\n" LAST3,
             ":2: the journal is damaged: record: it is not what was written"),
        /* with the check of what it is, which is not JSON */
        CASE("{\"n\":1}\n{\"n\":,2,\"crc\":\"28c096e5\"}\n" LAST3,
             ":2: the journal is damaged: record:1: not"),
        /* one that is whole and makes no sense is not damage, wherever it stands */
        CASE("{\"n\":1}\n{\"n\":13}\n{\"n\":3}\n", ":2: the journal is damaged: 13 is not liked"),
        CASE("hello\n", ":1: the journal is damaged: record:1: not valid JSON"),
        CASE("{\"n\":1,\"crc\":\"00000000\"}\n", ":1: the journal is damaged: record: it is not"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dt_strv records = DT_STRV_INIT;
        struct dt_error e = DT_ERROR_INIT;
        size_t len;
        put_file(cases[i].data, cases[i].len);
        assert_null(open_journal(&records, &e));
        char *expected = dt_xasprintf("%s%s", path, cases[i].error);
        if (!dt_starts_with(e.text, expected))
            fail_msg("%s; expected %s", e.text, expected);
        char *data = dt_read_file(path, 1 << 20, &len, NULL);
        assert_int_equal(len, cases[i].len);
        assert_memory_equal(data, cases[i].data, len);
        free(data);
        free(expected);
        dt_error_clear(&e);
        dt_strv_free(&records);
    }
}

static void damage_at_the_end_is_set_aside(void **state)
{
    static const char *const tails[] = {"{\"n\":3,\"crc\":\"00000000\"}\n{\"n\":4}\n{\"n\":5}\n",
                                        "{\"n\":\n{\"n\":4}\n", "{\n{\"n\":4}\n{\"n", "\x01\n"};
    char *aside = dt_xasprintf("%s.damaged", path), *all = dt_xstrdup("");
    (void)state;
    for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
        struct dt_strv records = DT_STRV_INIT;
        struct dt_error e = DT_ERROR_INIT;
        char *text = dt_xasprintf("{\"n\":1}\n{\"n\":2}\n%s", tails[i]);
        put_file(text, strlen(text));
        assert_int_equal(dt_journal_read(path, collect, &records, &e), 0);
        assert_int_equal(records.n, 2); /* reading changes nothing: it is as new for the writer */
        struct dt_journal *j = open_journal(&records, &e);
        assert_non_null(j);
        assert_int_equal(records.n, 2);
        assert_non_null(strstr(dt_journal_note(j), ":3: damaged ("));
        assert_true(dt_journal_begun(j));
        expect_file("{\"n\":1}\n{\"n\":2}\n");
        char *kept = dt_read_file(aside, 1 << 20, NULL, NULL);
        char *expected = dt_xasprintf("%s%s", all, tails[i]); /* what was set aside before is there still */
        assert_string_equal(kept, expected);
        free(all);
        bool torn = expected[strlen(expected) - 1] != '\n';
        all = dt_xasprintf("%s%s", expected, torn ? "\n" : "");
        free(expected);
        dt_journal_close(j);
        dt_strv_free(&records);
        free(kept);
        free(text);
    }
    unlink(aside);
    free(aside);
    free(all);
}

static void a_second_writer_is_refused(void **state)
{
    struct dt_strv records = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    put_file("{\"n\":1}\n{\"n\":2", 14);
    struct dt_journal *j = open_journal(&records, &e);
    (void)state;
    assert_non_null(j);
    assert_null(open_journal(&records, &e));
    char *expected =
        dt_xasprintf("%s: another tuner is writing it; wait for its job to end or cancel it", path);
    assert_string_equal(e.text, expected);
    free(expected);
    assert_int_equal(records.n, 0); /* it did not even read */
    dt_journal_close(j);
    j = open_journal(&records, &e);
    assert_non_null(j);
    dt_journal_close(j);
    dt_error_clear(&e);
    dt_strv_free(&records);
}

static void one_that_was_moved_gets_no_record(void **state)
{
    struct dt_strv records = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    struct json_object *record = json_object_new_object();
    char *moved = dt_xasprintf("%s.moved", path);
    (void)state;
    put_file("{\"n\":1}\n", 8);
    struct dt_journal *j = open_journal(&records, &e);
    assert_non_null(j);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(dt_journal_append(j, record, &e), -1);
    assert_non_null(strstr(e.text, "is not there any more"));
    assert_int_equal(rename(moved, path), 0);
    expect_file("{\"n\":1}\n");
    dt_journal_close(j);
    json_object_put(record);
    dt_error_clear(&e);
    dt_strv_free(&records);
    free(moved);
}

static void a_record_that_does_not_fit_leaves_no_half(void **state)
{
    struct dt_strv records = DT_STRV_INIT;
    struct dt_error e = DT_ERROR_INIT;
    struct rlimit old, small;
    put_file("", 0);
    struct dt_journal *j = open_journal(&records, &e);
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 30; /* a disk that is full after 30 bytes */
    assert_int_equal(append(j, "{\"n\": 1}", &e), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = append(j, "{\"n\": 2}", &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(e.text, "cannot write"));
    expect_file("{\"n\":1}\n");
    assert_int_equal(append(j, "{\"n\": 3}", &e), 0);
    expect_file("{\"n\":1}\n{\"n\":3}\n");
    dt_journal_close(j);
    dt_error_clear(&e);
    dt_strv_free(&records);
}

static void a_journal_that_cannot_be_opened_is_named(void **state)
{
    struct dt_error e = DT_ERROR_INIT;
    (void)state;
    assert_null(dt_journal_open("/no/such/folder/journal.jsonl", collect, NULL, &e));
    assert_string_equal(e.text, "/no/such/folder/journal.jsonl: No such file or directory");
    dt_error_clear(&e);
}

static int make_path(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    path = dt_xasprintf("%s/dt-test-journal.XXXXXX", tmp ? tmp : P_tmpdir);
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    free(path);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_are_there_after_reopening, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_torn_last_record_is_cut_off, make_path, remove_path),
        cmocka_unit_test_setup_teardown(damage_in_the_middle_is_refused_and_nothing_is_lost,
                                        make_path, remove_path),
        cmocka_unit_test_setup_teardown(damage_at_the_end_is_set_aside, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_second_writer_is_refused, make_path, remove_path),
        cmocka_unit_test_setup_teardown(one_that_was_moved_gets_no_record, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_record_that_does_not_fit_leaves_no_half, make_path,
                                        remove_path),
        cmocka_unit_test(a_journal_that_cannot_be_opened_is_named),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
