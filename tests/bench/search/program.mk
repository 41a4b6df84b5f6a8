# make -o Makefile -C BUILD -f .../program.mk program SOURCE=NAME.c PROGRAM=PATH
# A program of this folder with the flags and the library of a finished build, which is left as it is.
include Makefile
.PHONY: program
program:
	$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -o $(PROGRAM) \
		$(top_srcdir)/tests/bench/search/$(SOURCE) $(AM_LDFLAGS) $(LDFLAGS) $(LIBDT_LIBS) $(LIBS)
