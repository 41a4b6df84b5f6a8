/* lines: a conversation in lines of text with a program that may be slow, silent or gone. Reading and writing are done by
 * threads of their own, so that the caller never waits for it. */
#ifndef DT_LINES_H
#define DT_LINES_H

#include "util/util.h"

#define DT_LINE_MAX ((size_t)1024 * 1024)

struct dt_lines;
/* Reads in_fd and writes out_fd, and closes neither. A byte is written to wake_fd (non-blocking; -1: none) whenever there
 * may be news. */
struct dt_lines *dt_lines_new(int in_fd, int out_fd, int wake_fd, struct dt_error *e);

enum dt_line {
    DT_LINE_NONE,     /* not now */
    DT_LINE_ONE,      /* the caller frees it */
    DT_LINE_TOO_LONG, /* one of more than DT_LINE_MAX bytes was passed over */
    DT_LINE_END,      /* there will be no more */
};
/* The next line, without its end; the last may have none. *len is its length, a NUL byte in it counts. */
enum dt_line dt_lines_next(struct dt_lines *l, char **line, size_t *len);
/* Adds a line to what is to be written. One that can be spared is left out while much is waiting to be read. */
void dt_lines_put(struct dt_lines *l, const char *line, bool can_be_spared);
/* Whether nobody reads any more. */
bool dt_lines_gone(struct dt_lines *l);
/* Waits until all is written, unless for `patience` seconds nothing is taken, or *stop is set (NULL: never); then ends
 * both threads. */
void dt_lines_free(struct dt_lines *l, double patience, const volatile int *stop);

#endif
