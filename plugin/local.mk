# Plugins for Slurm: only their entry points are exported, nothing is linked (the program that loads them has
# all of Slurm). They never get the sanitizers' flags: a program built without cannot load such a plugin.
slurmplugin_LTLIBRARIES = spank_dt_tune.la job_submit_dt_tune.la
EXTRA_DIST += \
	plugin/compat.h plugin/names.h plugin/options.h plugin/spank.map plugin/job_submit.map

PLUGIN_LDFLAGS = -module -avoid-version -shared

spank_dt_tune_la_SOURCES = plugin/spank_dt_tune.c
spank_dt_tune_la_CPPFLAGS = $(AM_CPPFLAGS) -DBINDIR='"$(bindir)"'
spank_dt_tune_la_CFLAGS = $(DT_CFLAGS)
spank_dt_tune_la_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugin/spank.map
EXTRA_spank_dt_tune_la_DEPENDENCIES = plugin/spank.map

job_submit_dt_tune_la_SOURCES = \
	plugin/job_submit_dt_tune.c plugin/enforce.h plugin/enforce.c src/expand/carrier.c src/expand/carrier.h \
	src/conf/conf.h src/conf/conf.c src/util/number.h src/util/number.c
job_submit_dt_tune_la_CFLAGS = $(DT_CFLAGS)
job_submit_dt_tune_la_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(srcdir)/plugin/job_submit.map
EXTRA_job_submit_dt_tune_la_DEPENDENCIES = plugin/job_submit.map

# Slurm loads the .so alone; libtool's own notes are of no use in its folder.
.PHONY: tidy-plugins remove-plugins
tidy-plugins:
	rm -f "$(DESTDIR)$(slurmplugindir)/spank_dt_tune.la" "$(DESTDIR)$(slurmplugindir)/job_submit_dt_tune.la"
remove-plugins:
	rm -f "$(DESTDIR)$(slurmplugindir)/spank_dt_tune.so" "$(DESTDIR)$(slurmplugindir)/job_submit_dt_tune.so"
