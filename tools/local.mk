bin_PROGRAMS += dt-launch
dt_launch_SOURCES = tools/dt-launch.c
# Not all of LIBDT_LIBS: it is started for every task of every trial, and a library's threads would take the
# signals for which it waits. (Of hwloc nothing is used that starts any.)
dt_launch_LDADD = libdt.a $(JSON_C_LIBS) $(HWLOC_LIBS) $(SLURM_LIBS) -lm
dist_man_MANS += \
	tools/dt-launch.1 tools/dt-tune.1 tools/dt-sbatch.1 tools/dt-tune-admin.7 tools/dt-tune-frameworks.7 \
	tools/dt-tune-search.7 tools/dt-tune-troubleshooting.7 tools/dt-tune-tutorial.7 \
	tools/dt-tune.conf.5 plugin/spank_dt_tune.8 plugin/job_submit_dt_tune.8

bin_PROGRAMS += dt-tune dt-sbatch
TOOLS_COMMON = tools/tools.h tools/common.c tools/load.c tools/page.c tools/board.c tools/study.c tools/dry_run.c \
	tools/expand.c tools/submit.c
dt_tune_SOURCES = \
	tools/dt-tune.c $(TOOLS_COMMON) tools/prepare.c tools/run.c tools/check.c tools/doctor.c tools/metric.c \
	tools/report.c tools/watch.c tools/history.c tools/import.c tools/serve.c tools/suggest.c tools/simulate.c \
	tools/simulate.h tools/rehearse.c tools/topo.c tools/machine.c
dt_tune_LDADD = $(LIBDT_LIBS)
dt_sbatch_SOURCES = tools/dt-sbatch.c plugin/options.h $(TOOLS_COMMON)
dt_sbatch_LDADD = $(LIBDT_LIBS)
