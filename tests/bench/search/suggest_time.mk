# make -o Makefile -C BUILD -f .../suggest_time.mk SUGGEST_TIME=PROGRAM
# suggest_time.c with the flags and the library of a finished build, which is left as it is.
include Makefile
.PHONY: suggest-time
suggest-time:
	$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -o $(SUGGEST_TIME) \
		$(top_srcdir)/tests/bench/search/suggest_time.c $(AM_LDFLAGS) $(LDFLAGS) $(LIBDT_LIBS) $(LIBS)
