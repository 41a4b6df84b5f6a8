# The library that the tools and tests link: a folder a part.
noinst_LIBRARIES += libdt.a

libdt_a_SOURCES = \
	src/util/util.h src/util/slurm.h src/util/error.c src/util/mem.c src/util/buf.c src/util/strv.c \
	src/util/number.h src/util/number.c src/util/text.c src/util/json.c src/util/file.c src/util/proc.c src/util/table.c src/util/hostlist.c \
	src/util/pattern.h src/util/pattern.c

libdt_a_SOURCES += \
	src/space/space.h src/space/param.c src/space/constraint.c src/space/condition.c src/space/space.c \
	src/space/beside.c src/space/fidelity.c src/space/cluster.h src/space/cluster_private.h \
	src/space/cluster.c src/space/cluster_json.c src/space/features.c src/space/places.c src/space/feasible.h src/space/feasible_private.h \
	src/space/feasible.c src/space/need.c src/space/room.c src/space/fit.c src/space/share.c \
	src/space/fields.h src/space/fields.c \
	src/space/system.h src/space/system_private.h src/space/system.c src/space/system_part.c src/space/system_text.c

libdt_a_SOURCES += \
	src/expand/carrier.h src/expand/carrier.c src/expand/expand.h src/expand/job.c \
	src/expand/job_cluster.c src/expand/request.c src/expand/shape.c \
	src/expand/natural.c src/expand/generate.c src/expand/steps.c src/expand/expand.c

libdt_a_SOURCES += src/conf/conf.h src/conf/conf.c src/conf/limits.h src/conf/limits.c

libdt_a_SOURCES += src/placement/placement.h src/placement/placement.c

libdt_a_SOURCES += \
	src/topology/topology.h src/topology/read.c src/topology/links.c src/topology/plan.c \
	src/topology/budget.c src/topology/text.c src/topology/store.c

libdt_a_SOURCES += \
	src/spec/spec.h src/spec/spec_private.h src/spec/spec.c src/spec/reader.c src/spec/domain.c \
	src/spec/metrics.c src/spec/reallocate.c src/spec/merge.c

# The same bits on every machine: no fused multiply-add; the loops of the model are worth vectorizing.
libdt_a_CFLAGS = $(AM_CFLAGS) $(MODEL_CFLAGS)
libdt_a_SOURCES += \
	src/model/model.h src/model/portable.h src/model/kernel.h src/model/gp.c src/model/fit.c \
	src/model/encode.h src/model/encode.c src/model/speed.h src/model/speed.c src/model/nnls.h src/model/nnls.c \
	src/model/work.h src/model/work.c

libdt_a_SOURCES += \
	src/optimizer/optimizer.h src/optimizer/algorithms.h src/optimizer/optimizer.c src/optimizer/recommend.c \
	src/optimizer/random.c src/optimizer/grid.c src/optimizer/sobol.c src/optimizer/bayes.c src/optimizer/joint.c \
	src/optimizer/acquire.h src/optimizer/acquire.c src/optimizer/observed.h src/optimizer/observed.c \
	src/optimizer/judge.h src/optimizer/judge.c src/optimizer/full_costs.c src/optimizer/lessons.h src/optimizer/lessons.c \
	src/optimizer/belief.h src/optimizer/belief.c src/optimizer/pool.h src/optimizer/pool.c \
	src/optimizer/perturb.c src/optimizer/explain.h src/optimizer/explain.c \
	src/stopping/stopping.h src/stopping/stopping.c src/stopping/prune.h src/stopping/prune.c \
	src/stopping/population.h src/stopping/population.c

libdt_a_SOURCES += \
	src/tuner/tuner.h src/tuner/event.c src/tuner/study.c src/tuner/series.c src/tuner/ask.c \
	src/tuner/decide.c src/tuner/early.c src/tuner/population.c src/tuner/reallocate.c src/tuner/journal.c \
	src/tuner/run.c src/tuner/setup.h src/tuner/setup.c

libdt_a_SOURCES += \
	src/backend/backend.h src/backend/slurm_private.h src/backend/slurm.c src/backend/slurm_jobs.c src/backend/pace.c \
	src/backend/slurm_system.c src/backend/slurm_node.c src/backend/slurm_limits.c src/backend/slurm_cluster.c \
	src/backend/slurm_submit.c src/backend/slurm_one_job.c src/backend/slurm_site.c src/backend/slurm_steps.c \
	src/backend/records.c src/backend/trial.c src/backend/steps.c src/backend/steps_env.c src/backend/allocation.c \
	src/backend/metrics.c src/backend/usage.c src/backend/step_watch.c src/backend/shed.c src/backend/handover.c src/backend/replay.c

libdt_a_SOURCES += \
	src/history/history.h src/history/workload.c src/history/history.c src/history/apply.c \
	src/history/past.c src/history/export.c

libdt_a_SOURCES += src/serve/serve.h src/serve/protocol.c src/serve/lines.h src/serve/lines.c

libdt_a_SOURCES += src/monitor/monitor.h src/monitor/usage.c src/monitor/proc.c \
	src/monitor/cgroup.c src/monitor/gpu.c src/monitor/sampler.c src/monitor/gather.c src/monitor/step_stat.c

libdt_a_SOURCES += \
	src/allocator/allocator.h src/allocator/allocator_private.h src/allocator/allocator.c \
	src/allocator/thresholds.c src/allocator/gain.c src/allocator/nodes.c src/allocator/save.c

libdt_a_SOURCES += \
	src/report/report.h src/report/text.c src/report/front.c src/report/thrift.c src/report/data.c \
	src/report/record.c src/report/usage.c src/report/screen.c src/report/chronicle.c \
	src/report/views.c src/report/page.c

# What the page of a report is made of; in a build tree configure links it to share/dt-tune.
dist_pkgdata_DATA += \
	src/report/page/report.html src/report/page/report.css src/report/page/report.js src/report/echarts/echarts.min.js
echartsdir = $(docdir)/echarts
dist_echarts_DATA = \
	src/report/echarts/README src/report/echarts/LICENSE src/report/echarts/LICENSE-d3 src/report/echarts/NOTICE

libdt_a_SOURCES += \
	src/spec/submission.h src/spec/submission_private.h src/spec/submission.c \
	src/spec/sbatch_options.c src/spec/directives.c src/spec/fixed_size.c src/spec/batch_script.c \
	src/spec/option_reader.c

LIBDT_LIBS = libdt.a $(JSON_C_LIBS) $(GSL_LIBS) $(MUPARSER_LIBS) $(CSV_LIBS) $(ZLIB_LIBS) $(HWLOC_LIBS) $(SLURM_LIBS) -lm

libdt_a_SOURCES += \
	src/launch/launch.h src/launch/plan.c src/launch/ports.c src/launch/env.c src/launch/bind.c src/launch/shim.c \
	src/launch/steps.c src/launch/hydra.c src/launch/task.c src/launch/batch.c src/launch/learn.c src/launch/patterns.c
