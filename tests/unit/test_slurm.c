/* What a run of a batch job has ended of, by its records and by what Slurm says at that time; and
 * what is asked of Slurm again where it does not answer. */
#include "backend/slurm.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void preemption_that_was_announced_is_why_it_ended(void **state)
{
    static const struct {
        bool tasks_told, preempted;
        int exit_code;
        uint32_t state;
        enum dt_cause cause;
    } cases[] = {
        /* its record is there, and for Slurm it is still at work, or has ended by itself */
        {true, true, 0, JOB_RUNNING, DT_CAUSE_PREEMPTED},
        {true, true, 3, JOB_RUNNING, DT_CAUSE_PREEMPTED},
        {true, true, 0, JOB_PREEMPTED, DT_CAUSE_PREEMPTED},
        {true, false, 0, JOB_RUNNING, DT_CAUSE_CANCELLED},
        {true, false, 3, JOB_RUNNING, DT_CAUSE_CANCELLED},
        {false, false, 3, JOB_RUNNING, DT_CAUSE_EXIT},
        {false, true, 0, JOB_RUNNING, DT_CAUSE_OK}, /* its work was done */
    };
    const struct dt_submission none = {0};
    const struct slurm b = {.c = {.submission = &none}};
    const struct dt_study s = {0};
    const struct dt_trial t = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dt_records r = {.ended = true, .tasks_told = cases[i].tasks_told};
        struct dt_slurm_job job = {.state = cases[i].state, .preempted = cases[i].preempted};
        r.exit_code = cases[i].exit_code;
        assert_int_equal(cause_of_end(&b, &s, &t, "/nowhere", &r, &job), cases[i].cause);
    }
}

static int answer; /* of Slurm, to who gives nodes back */
static int asked;
static double clock_now;

double __wrap_dt_monotonic(void);
double __wrap_dt_monotonic(void)
{
    return clock_now;
}

bool __wrap_dt_shed_done(const char *dir, int run, size_t workers);
bool __wrap_dt_shed_done(const char *dir, int run, size_t workers)
{
    (void)dir;
    return run == 1 && workers == 1;
}

int __wrap_dt_shed_nodes(const char *dir, uint32_t job, size_t workers);
int __wrap_dt_shed_nodes(const char *dir, uint32_t job, size_t workers)
{
    (void)dir;
    (void)workers;
    asked += job == 7;
    return answer;
}

static void nodes_are_given_back_until_slurm_has_heard(void **state)
{
    struct dt_strv none = DT_STRV_INIT;
    struct dt_space *space = dt_space_new(NULL, 0, &none, NULL, 0, NULL, NULL, NULL, 0, NULL);
    assert_non_null(space);
    struct slurm b = {.c = {.space = space}};
    struct watch w = {.shedding = true, .shed_due = 1000};
    const struct dt_trial t = {.run = 1, .job = 7};
    (void)state;
    answer = -1;
    for (clock_now = 100; clock_now < 130; clock_now++)
        look_for_surplus(&b, &t, &w, "/nowhere");
    assert_int_equal(asked, 3); /* once in 10 s */
    assert_false(w.shed);
    answer = 1;
    for (; clock_now < 160; clock_now++)
        look_for_surplus(&b, &t, &w, "/nowhere");
    assert_int_equal(asked, 4);
    assert_true(w.shed);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preemption_that_was_announced_is_why_it_ended),
        cmocka_unit_test(nodes_are_given_back_until_slurm_has_heard),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
