# make check: unit tests (cmocka) and tests on a real private Slurm (bats), both speaking TAP.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_carrier tests/unit/test_job_submit
tests_unit_test_carrier_SOURCES = tests/unit/test_carrier.c src/expand/carrier.c
tests_unit_test_carrier_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_carrier_LDADD = $(CMOCKA_LIBS)
tests_unit_test_job_submit_SOURCES = tests/unit/test_job_submit.c src/expand/carrier.c
tests_unit_test_job_submit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugin
tests_unit_test_job_submit_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_test_job_submit_LDADD = $(CMOCKA_LIBS)
TESTS += tests/unit/test_carrier tests/unit/test_job_submit
endif
EXTRA_DIST += tests/cluster/02-plugins.bats

EXTRA_DIST += tests/data/scripts tests/fuzz/fuzz_submission.c
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_submission
tests_unit_test_submission_SOURCES = tests/unit/test_submission.c
tests_unit_test_submission_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_submission_LDADD = $(LIBDT_LIBS) $(CMOCKA_LIBS)
TESTS += tests/unit/test_submission
endif

EXTRA_DIST += tests/cluster/04-launch.bats
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_launch
tests_unit_test_launch_SOURCES = tests/unit/test_launch.c
tests_unit_test_launch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_launch_LDADD = $(LIBDT_LIBS) $(CMOCKA_LIBS)
TESTS += tests/unit/test_launch
endif
