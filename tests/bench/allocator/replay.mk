# make -o Makefile -C BUILD -f .../replay.mk REPLAY=PROGRAM
# replay.c with the flags and the library of a finished build, which is left as it is.
include Makefile
.PHONY: allocator-replay
allocator-replay:
	$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -o $(REPLAY) \
		$(top_srcdir)/tests/bench/allocator/replay.c $(AM_LDFLAGS) $(LDFLAGS) $(LIBDT_LIBS) $(LIBS)
