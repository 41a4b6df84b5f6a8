# make check: unit tests (cmocka) and tests on a real private Slurm (bats), all speaking TAP.
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP_DRIVER)
TEST_EXTENSIONS = .bats
BATS_LOG_DRIVER = $(TAP_DRIVER)
BATS_LOG_COMPILER = $(BATS) --tap
AM_TESTS_ENVIRONMENT = DT_BUILD='$(abs_top_builddir)'; export DT_BUILD;

# A program a part, its source of the same name. All of the library is linked but where a test includes what it tests.
UNIT_TESTS = \
	tests/unit/test_util tests/unit/test_submission tests/unit/test_spec tests/unit/test_space \
	tests/unit/test_expand tests/unit/test_gp tests/unit/test_bayes tests/unit/test_warm tests/unit/test_fidelity \
	tests/unit/test_optimizer tests/unit/test_stopping tests/unit/test_prune tests/unit/test_population \
	tests/unit/test_handover tests/unit/test_reallocate tests/unit/test_study tests/unit/test_metrics \
	tests/unit/test_journal tests/unit/test_replay tests/unit/test_simulate tests/unit/test_launch \
	tests/unit/test_carrier tests/unit/test_conf tests/unit/test_job_submit tests/unit/test_history \
	tests/unit/test_serve tests/unit/test_monitor tests/unit/test_steps tests/unit/test_report \
	tests/unit/test_topology tests/unit/test_cluster tests/unit/test_slurm tests/unit/test_slurm_submit tests/unit/test_pace \
	tests/unit/test_run
LDADD = $(LIBDT_LIBS) $(CMOCKA_LIBS)
tests_unit_test_launch_LDFLAGS = -Wl,--wrap=sigtimedwait,--wrap=dt_now
tests_unit_test_metrics_LDFLAGS = -Wl,--wrap=dt_open_regular
tests_unit_test_util_LDFLAGS = -Wl,--wrap=waitpid,--wrap=clock_gettime
tests_unit_test_slurm_LDFLAGS = -Wl,--wrap=dt_monotonic,--wrap=dt_shed_done,--wrap=dt_shed_nodes
tests_unit_test_steps_LDFLAGS = -Wl,--wrap=dt_now,--wrap=dt_slurm_steps_load,--wrap=dt_slurm_fate
tests_unit_test_job_submit_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugin
tests_unit_test_monitor_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_NVML='"$(abs_top_builddir)/tests/unit/.libs/fake_nvml.so"'

# In order: what a later one builds on is tested by an earlier one. make check CLUSTER_TESTS= leaves them out.
CLUSTER_TESTS = \
	tests/cluster/01-cluster.bats tests/cluster/02-plugins.bats tests/cluster/03-examples.bats \
	tests/cluster/04-launch.bats tests/cluster/05-sbatch-parity.bats tests/cluster/06-refusals.bats \
	tests/cluster/07-expand.bats tests/cluster/08-options.bats tests/cluster/09-lifecycle.bats \
	tests/cluster/10-metrics.bats tests/cluster/11-history.bats tests/cluster/12-serve.bats \
	tests/cluster/13-loops.bats tests/cluster/14-pbt.bats tests/cluster/15-steps.bats \
	tests/cluster/16-monitor.bats tests/cluster/17-reallocate.bats tests/cluster/18-binding.bats \
	tests/cluster/19-limits.bats tests/cluster/20-feasible.bats tests/cluster/21-faults.bats \
	tests/cluster/22-report.bats tests/cluster/23-others.bats tests/cluster/24-frameworks.bats tests/cluster/25-documents.bats \
	tests/cluster/31-administration.bats tests/cluster/32-completion.bats tests/page.bats tests/manuals.bats tests/packages.bats \
	tests/campaign/cluster-crash

# Campaigns: many faults, seeded; make check runs a short one of each.
CAMPAIGNS = tests/campaign/crash
check_PROGRAMS += $(CAMPAIGNS) tests/bench/long_study
TESTS += $(CAMPAIGNS)
tests_campaign_crash_SOURCES = tests/campaign/crash.c tests/campaign/world.c tests/campaign/world.h
tests_campaign_crash_LDFLAGS = -Wl,--wrap=write,--wrap=fsync

check_PROGRAMS += tests/feasible/shapes
tests_feasible_shapes_LDADD = $(LIBDT_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
check_LTLIBRARIES = tests/unit/fake_nvml.la
tests_unit_fake_nvml_la_SOURCES = tests/unit/fake_nvml.c
tests_unit_fake_nvml_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
TESTS += $(UNIT_TESTS)
endif
if HAVE_BATS
TESTS += $(CLUSTER_TESTS)
endif

EXTRA_DIST += \
	$(CLUSTER_TESTS) tests/cluster/dt-cluster tests/cluster/environment-table tests/cluster/page-check \
	tests/cluster/common.bash tests/cluster/life.bash tests/demo tests/all tests/lint tests/memory tests/coverage tests/versions tests/complaints.md \
	tests/setup.bash tests/data tests/fuzz tests/bench tests/campaign/load tests/campaign/many tests/feasible/run tests/feasible/compare \
	.ci/run

# For tests/fuzz/run and tests/versions: PROGRAM from SOURCES, with the flags of a target and with the library, unless WITH says otherwise.
WITH = libdt.a
fuzz-program: libdt.a
	$(CC) -g -O1 $(FUZZ_FLAGS) $(DEFS) -I. $(AM_CPPFLAGS) -I$(top_srcdir)/plugin $(CPPFLAGS) -std=gnu17 -o $(PROGRAM) \
		$(SOURCES) $(WITH) $(filter-out libdt.a,$(LIBDT_LIBS)) $(LIBS) -lpthread
.PHONY: fuzz-program
