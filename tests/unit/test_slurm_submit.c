/* What sbatch answers, and whether it is worth asking again. */
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

#define POLICY                                                                                     \
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "  \
    "limit, user's size and/or time limits)"

static void answers_of_sbatch_are_told_apart(void **state)
{
    enum { SUBMITTED, LATER, REFUSED };
    static const struct {
        const char *out, *err;
        int rc, code;
    } cases[] = {
        {"17;cluster", "", 0, SUBMITTED},
        {"a site says hello\n17", "warning", 0, SUBMITTED},
        {"", "", 1, REFUSED},
        {"", "sbatch: error: Unable to contact slurm controller (connect failure)", 1, LATER},
        {"", "sbatch: error: invalid partition specified: x", 1, REFUSED},
        {"", "sbatch: error: AssocMaxSubmitJobLimit\n" POLICY, 1, LATER},
        {"", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n" POLICY, 1, LATER},
        {"", "sbatch: error: AssocGrpSubmitJobsLimit\n" POLICY, 1, LATER},
        {"", "sbatch: error: QOSMaxCpuPerJobLimit\n" POLICY, 1, REFUSED},
        {"", "sbatch: error: QOSMaxWallDurationPerJobLimit\n" POLICY, 1, REFUSED},
        {"", "sbatch: error: AssocMaxNodePerJobLimit\n" POLICY, 1, REFUSED},
        {"", POLICY, 1, LATER}, /* older ones do not say which */
    };
    char dir[] = "/tmp/dt-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    char *path = dt_xasprintf("%s/sbatch", dir);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = dt_xasprintf("#!/bin/sh\ncat <<'E'\n%s\nE\ncat >&2 <<'E'\n%s\nE\nexit %d\n",
                                  cases[i].out, cases[i].err, cases[i].rc);
        struct dt_error e = DT_ERROR_INIT;
        uint32_t job = 0;
        char *why;
        assert_int_equal(dt_write_file(path, text, strlen(text), 0755, &e), 0);
        int rc = dt_slurm_submit(path, "job.sh", NULL, &job, &why, &e);
        if (rc != cases[i].code || (rc == SUBMITTED && job != 17) || (rc != SUBMITTED && !why))
            fail_msg("case %zu: %d, job %u, %s", i, rc, job, why ? why : "nothing");
        free(why);
        free(text);
        dt_error_clear(&e);
    }
    unlink(path);
    rmdir(dir);
    free(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_sbatch_are_told_apart),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
