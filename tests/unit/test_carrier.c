/* The carrier: what is built can be taken apart again, runs under sh, and nothing else is taken for
 * one. */
#include "expand/carrier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const run_argv[] = {"/opt/dt/bin/dt-tune", "run", NULL};
static const char json[] = "{\"version\":1,\"text\":\"#DT-TUNE-SCRIPT '\\\"$x\"}";

static void test_text(void **state)
{
    char *text = dt_carrier_build("", run_argv, "{}", "#!/bin/bash\necho hi\n");

    (void)state;
    assert_string_equal(text, "#!/bin/sh\n"
                              "exec '/opt/dt/bin/dt-tune' 'run' --carrier \"$0\" \"$@\"\n"
                              "#DT-TUNE-JSON {}\n"
                              "#DT-TUNE-SCRIPT\n"
                              "#!/bin/bash\necho hi\n");
    free(text);
}

static void check_round_trip(const char *header, const char *script)
{
    struct dt_carrier c;
    char *text = dt_carrier_build(header, run_argv, json, script);

    assert_non_null(text);
    assert_int_equal(dt_carrier_parse(text, &c), 0);
    assert_int_equal(c.json_len, strlen(json));
    assert_memory_equal(c.json, json, c.json_len);
    assert_string_equal(c.script, script);
    free(text);
}

static void test_round_trips(void **state)
{
    char *inner = dt_carrier_build("", run_argv, "{\"inner\":1}", "#!/bin/sh\n");

    (void)state;
    check_round_trip("", "");
    check_round_trip("", "#!/bin/sh");
    check_round_trip("#SBATCH -N2\n#SBATCH hetjob\n", "#!/usr/bin/python3\nprint('\xc3\xa9')\n\n");
    check_round_trip("#SBATCH --comment=\"exec 'a'\"\n",
                     "#!/bin/sh\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\nx\n");
    check_round_trip("#SBATCH -n1\n", inner);
    free(inner);
}

static void test_header_gets_its_newline(void **state)
{
    char *text = dt_carrier_build("#SBATCH -n1", run_argv, "{}", "#!/bin/sh\n");

    (void)state;
    assert_non_null(strstr(text, "\n#SBATCH -n1\nexec '"));
    free(text);
}

static void test_refuses_newlines(void **state)
{
    static const char *const bad[] = {"/bin/a\nb", NULL};

    (void)state;
    assert_null(dt_carrier_build("", run_argv, "{\n}", "#!/bin/sh\n"));
    assert_null(dt_carrier_build("", bad, "{}", "#!/bin/sh\n"));
}

static void test_no_carriers(void **state)
{
    static const char *const texts[] = {
        "",
        "#!/bin/sh\n",
        "#!/bin/sh\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\n",
        "#!/bin/sh\ncat <<E\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\nE\n",
        "#!/bin/bash\nexec 'a' --carrier \"$0\" \"$@\"\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\n",
        "#!/bin/sh\nexec 'a' --carrier \"$0\" \"$@\"\n#DT-TUNE-JSON {}",
        "#!/bin/sh\nexec 'a' --carrier \"$0\" \"$@\"\n#DT-TUNE-JSON {}\n",
        "#!/bin/sh\nexec 'a' --carrier \"$0\" \"$@\"\n#DT-TUNE-JSON {}\nx\n#DT-TUNE-SCRIPT\n",
        "#!/bin/sh\n --carrier \"$0\" \"$@\"\n#DT-TUNE-JSON {}\n#DT-TUNE-SCRIPT\n",
    };
    struct dt_carrier c;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (dt_carrier_parse(texts[i], &c) == 0)
            fail_msg("taken for a carrier: %s", texts[i]);
    }
}

/* Runs the text as a script with one argument and returns what it prints. */
static char *run_script(const char *text, size_t *len)
{
    char path[] = "/tmp/dt-carrier-XXXXXX";
    int fd = mkstemp(path), fds[2];
    static char out[4096];
    ssize_t n;
    pid_t pid;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(pipe(fds), 0);
    if ((pid = fork()) == 0) {
        dup2(fds[1], 1);
        execl("/bin/sh", "/bin/sh", path, "an arg", (char *)NULL);
        _exit(126);
    }
    close(fds[1]);
    for (*len = 0; (n = read(fds[0], out + *len, sizeof(out) - 1 - *len)) > 0;)
        *len += (size_t)n;
    out[*len] = '\0';
    close(fds[0]);
    waitpid(pid, NULL, 0);
    unlink(path);
    return out;
}

static void test_words_reach_the_program(void **state)
{
    static const char *const words[] = {"/usr/bin/printf",  "%s|", "a'b",
                                        "$HOME `id` \\ \"", "",    NULL};
    char *text = dt_carrier_build("", words, json, "this is never run: exit 3 ' \" `");
    size_t len;
    char *out = run_script(text, &len);

    (void)state;
    assert_int_equal(strncmp(out, "a'b|$HOME `id` \\ \"||--carrier|/tmp/dt-carrier-", 46), 0);
    assert_string_equal(out + len - 8, "|an arg|");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_header_gets_its_newline),
        cmocka_unit_test(test_refuses_newlines),
        cmocka_unit_test(test_no_carriers),
        cmocka_unit_test(test_words_reach_the_program),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
