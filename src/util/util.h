/* util: what every other part stands on. No policy, no global state; of Slurm no more than what its
 * headers are like (slurm.h).
 *
 * Conventions of the whole library:
 *  - a function that can fail takes a `struct dt_error *` last, returns -1 (or NULL) and leaves in
 * it one line that a user can act on: what, where, what to do;
 *  - `take`, `new` and `_dup` in a name, or a returned `char *`, mean the caller owns the result
 * and frees it with free() or the matching _free();
 *  - running out of memory ends the program (the dt_x... allocators): no tool here can go on
 * without;
 *  - seconds are double, memory is MiB in uint64_t.
 */
#ifndef DT_UTIL_H
#define DT_UTIL_H

#include "util/number.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DT_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* ---- errors as values (error.c) ---- */

struct dt_error {
    char *text; /* one line without newline, or NULL; owned */
};
#define DT_ERROR_INIT                                                                              \
    {                                                                                              \
        NULL                                                                                       \
    }

/* Sets the error to the formatted line (replacing an earlier one) and returns -1. `e` may be NULL.
 */
int dt_fail(struct dt_error *e, const char *fmt, ...) DT_PRINTF(2, 3);
/* Puts "prefix: " before the error's text and returns -1: adds the place on the way up. */
int dt_fail_at(struct dt_error *e, const char *fmt, ...) DT_PRINTF(2, 3);
void dt_error_clear(struct dt_error *e);

/* ---- memory (mem.c) ---- */

void *dt_xcalloc(size_t n, size_t size);
void *dt_xrealloc(void *p, size_t n, size_t size);
char *dt_xstrdup(const char *s);
char *dt_xstrndup(const char *s, size_t n);
char *dt_xasprintf(const char *fmt, ...) DT_PRINTF(1, 2);
char *dt_xvasprintf(const char *fmt, va_list ap) DT_PRINTF(1, 0);

/* ---- growing string (buf.c) ---- */

struct dt_buf {
    char *s; /* NUL-terminated once anything was added, else NULL */
    size_t len, cap;
};
#define DT_BUF_INIT                                                                                \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

void dt_buf_add(struct dt_buf *b, const char *s);
void dt_buf_addn(struct dt_buf *b, const char *s, size_t n);
void dt_buf_addf(struct dt_buf *b, const char *fmt, ...) DT_PRINTF(2, 3);
/* Gives the string away (never NULL) and empties the buffer. */
char *dt_buf_take(struct dt_buf *b);
void dt_buf_free(struct dt_buf *b);

/* ---- list of strings, NULL-terminated like argv (strv.c) ---- */

struct dt_strv {
    char **v; /* v[n] is NULL; v itself is NULL while n == 0 and nothing was added */
    size_t n;
};
#define DT_STRV_INIT                                                                               \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

void dt_strv_add(struct dt_strv *l, const char *s);
void dt_strv_addf(struct dt_strv *l, const char *fmt, ...) DT_PRINTF(2, 3);
void dt_strv_take(struct dt_strv *l, char *s);
void dt_strv_addv(struct dt_strv *l, char *const *v);
/* Splits at any of `seps`; empty words are dropped. */
void dt_strv_split(struct dt_strv *l, const char *s, const char *seps);
char *dt_strv_join(const struct dt_strv *l, const char *sep);
void dt_strv_free(struct dt_strv *l);

/* ---- words (text.c); numbers in them are read by number.h ---- */

bool dt_starts_with(const char *s, const char *prefix);
/* The candidate nearest to `word` by edit distance, or NULL where none is near enough to be meant.
 */
const char *dt_nearest(const char *word, const char *const *candidates, size_t n);
/* The shortest text that reads back as the same double. Caller frees. */
char *dt_format_double(double x);
/* What a program printed, as text that may stand in JSON, which must be UTF-8: '?' for every byte
 * that is none, and for NUL. Caller frees. */
char *dt_clean_text(const char *s, size_t n);
/* The beginning of it, without control characters, for a message of one line. Caller frees. */
char *dt_snippet(const char *s, size_t n);
/* 83 -> "1:23", 3723 -> "1:02:03"; below a minute "12.3 s". Caller frees. */
char *dt_format_duration(double seconds);

/* ---- JSON over json-c (json.c) ---- */

/* Parses the whole text strictly (no trailing text, no duplicate keys). `what` names it in errors.
 * The caller puts() the result. */
struct json_object *dt_json_parse(const char *text, const char *what, struct dt_error *e);
/* The line (1-based) on which the key at this path ("dt", "ps", NULL) stands in the text; 0 if
 * nowhere. */
int dt_json_line(const char *text, const char *const *path);
/* One-line text of the object. Caller frees. */
char *dt_json_text(struct json_object *o);
/* A number in its shortest form; an integer where it is one and fits; null where it is not finite.
 */
struct json_object *dt_json_number(double x);
/* Lookups that give a default where the key is absent or of another type. Strings are borrowed. */
const char *dt_json_str(struct json_object *o, const char *key, const char *fallback);
double dt_json_num(struct json_object *o, const char *key, double fallback);
int64_t dt_json_int(struct json_object *o, const char *key, int64_t fallback);
bool dt_json_bool(struct json_object *o, const char *key, bool fallback);
struct json_object *dt_json_get(struct json_object *o, const char *key);
/* An array's elements; 0 and NULL where it is no array, for json-c ends the program there.
 * Borrowed. */
size_t dt_json_count(struct json_object *array);
struct json_object *dt_json_at(struct json_object *array, size_t i);

/* ---- files (file.c) ---- */

/* Reads a regular file (or a pipe) of at most `max` bytes; NUL-terminated. Says so when `path` is
 * missing, a directory, unreadable or larger. Caller frees. */
char *dt_read_file(const char *path, size_t max, size_t *len, struct dt_error *e);
/* The same for a file that must be text: a NUL byte in it is an error. */
char *dt_read_text(const char *path, size_t max, struct dt_error *e);
char *dt_read_fd(int fd, const char *what, size_t max, size_t *len, struct dt_error *e);
/* write() until all is written; 0, or -1 and errno. */
int dt_write_all(int fd, const char *data, size_t len);
/* For what a user's program has written, which may be anything: never waits, and only a regular file
 * is opened. -1: none is there. */
int dt_open_regular(const char *path);
/* Writes to a temporary file beside it, fsyncs, renames. */
int dt_write_file(const char *path, const char *data, size_t len, unsigned mode,
                  struct dt_error *e);
int dt_mkdirs(const char *path, struct dt_error *e);
/* One that nobody else may look into; folders above it are as dt_mkdirs() makes them. What is there
 * already stays as it is. */
int dt_mkdir_private(const char *path, struct dt_error *e);
/* The folder that holds this program's own executable. Caller frees. */
char *dt_self_dir(struct dt_error *e);
/* The executable's path; the same where an upgrade has replaced the file since it was started. */
char *dt_self_exe(struct dt_error *e);
/* Finds a program along PATH, passing over `not_this` (a real path, or NULL). Caller frees; NULL if
 * none. */
char *dt_find_program(const char *name, const char *not_this);

/* ---- Slurm's node lists (hostlist.c) ---- */

/* "h[1-3,07],x" -> h1 h2 h3 h07 x. */
int dt_hostlist_expand(const char *text, struct dt_strv *out, struct dt_error *e);
/* The other way; neighbours that count on become a range, the order is kept. Caller frees. */
char *dt_hostlist_compress(const struct dt_strv *names);
/* Slurm's counts, "4(x2),3" -> 4 4 3. Returns how many, -1 where the text is none; caller frees
 * *out. */
int dt_counts_expand(const char *text, int **out);

/* ---- tables in CSV files with a header line (table.c) ---- */

struct dt_table {
    struct dt_strv columns;
    char **cells; /* nrows x columns.n; owned */
    size_t nrows;
};
struct dt_table *dt_table_read(const char *path, struct dt_error *e);
void dt_table_free(struct dt_table *t);
/* Index of the column, or -1 with an error that names the nearest one. */
int dt_table_column(const struct dt_table *t, const char *name, struct dt_error *e);
const char *dt_table_cell(const struct dt_table *t, size_t row, int column);

/* ---- processes (proc.c): argv and posix_spawn, never a shell ---- */

struct dt_proc_result {
    int status;      /* as waitpid() gives it */
    char *out, *err; /* what it wrote, NUL-terminated, each cut at 1 MiB; owned */
};
/* Runs argv with `env` (NULL: ours) to its end, whatever it leaves behind, at most `timeout`
 * seconds (<= 0: no limit; then it is killed). SIGTERM, SIGINT, SIGHUP and SIGUSR1 are blocked in
 * the child, so that a signal to our whole job does not cut a submission in half. */
int dt_proc_run(char *const *argv, char *const *env, double timeout, struct dt_proc_result *r,
                struct dt_error *e);
void dt_proc_result_free(struct dt_proc_result *r);
/* Wall clock and monotonic clock in seconds. */
double dt_now(void);
double dt_monotonic(void);
/* Copies environ without what must not reach a nested submission: SLURM_* (SLURM_CONF stays),
 * SRUN_*, SBATCH_*, SALLOC_*, SPANK_*, _SLURM_*, PMI*, and the variables that dt-tune itself sets
 * for a trial. */
void dt_scrubbed_environ(struct dt_strv *out);

#endif
