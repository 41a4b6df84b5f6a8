/* Inside of the submission reader: the borders between its files and what the fuzz target drives.
 */
#ifndef DT_SUBMISSION_PRIVATE_H
#define DT_SUBMISSION_PRIVATE_H

#include "spec/submission.h"

#include <getopt.h>

/* ---- #SBATCH lines (directives.c) ---- */

struct dt_words {
    struct dt_strv list;
    int *line; /* line[i]: where list.v[i] stands, from 1 */
};

/* The words of all #SBATCH lines that sbatch reads: those before the first command. `name` is for
 * messages. */
int dt_directives_lex(const char *text, size_t len, const char *name, struct dt_words *w,
                      struct dt_strv *warnings, struct dt_error *e);
void dt_words_free(struct dt_words *w);
/* The line of the first #PBS or #BSUB that sbatch would translate; 0 if none. */
int dt_directives_foreign(const char *text, size_t len);
/* Text for a message: control characters made visible as '?', long text cut. Caller frees. */
char *dt_printable(const char *s);

/* ---- options (option_reader.c) ---- */

struct dt_option_list {
    struct dt_option *v;
    size_t n;
};

struct dt_option_reader {
    const char *sbatch; /* asked for foreign options; may be NULL */
    char *const *env;
    bool asked, answered;
    struct dt_sbatch_option *foreign;
    size_t n_foreign;
    struct option *longs; /* for getopt_long(): Slurm's, ours, foreign; rebuilt when these grow */
    char *shorts;
};

void dt_option_reader_free(struct dt_option_reader *r);
/* Where words came from. */
struct dt_word_source {
    enum dt_origin origin;
    const char *script; /* its name; NULL for the command line */
    const int *line;    /* of argv[i]; NULL for the command line */
};
/* Reads the options of argv[1..argc-1] as sbatch does and appends them; *rest is the index of the
 * first word that is none. */
int dt_option_reader_parse(struct dt_option_reader *r, int argc, char **argv,
                           const struct dt_word_source *from, struct dt_option_list *out, int *rest,
                           struct dt_strv *warnings, struct dt_error *e);
/* The #SBATCH lines of a script, refused words included. */
int dt_option_reader_script(struct dt_option_reader *r, const char *text, size_t len,
                            const char *name, struct dt_option_list *out, struct dt_strv *warnings,
                            struct dt_error *e);
void dt_option_list_add(struct dt_option_list *l,
                        const struct dt_option *o); /* copies the strings */
void dt_option_list_free(struct dt_option_list *l);

/* ---- values and environment (sbatch_options.c) ---- */

/* What sbatch has against the value, or NULL. */
const char *dt_sbatch_value_fault(const struct dt_sbatch_option *def, const char *value);
/* Options that undo this one when they come later; NULL-terminated. */
const char *const *dt_sbatch_rivals(const char *name);

/* ---- the script (batch_script.c) ---- */

/* Finds and reads the script into s (name, path, text). `chdir`: the value of --chdir on the
 * command line, or NULL. */
int dt_batch_script_find(struct dt_submission *s, const char *given, const char *chdir,
                         char *const *env, struct dt_error *e);
int dt_batch_script_stdin(struct dt_submission *s, int fd, struct dt_error *e);
void dt_batch_script_wrap(struct dt_submission *s, const char *command);
/* Refuses a text that sbatch refuses. */
int dt_batch_script_check(const char *text, size_t len, const char *name, struct dt_error *e);
/* The value of `name` in an environ-style array, or NULL. */
const char *dt_env_get(char *const *env, const char *name);

#endif
