/* A submission as the user wrote it: sbatch's command line, SBATCH_* environment and #SBATCH lines,
 * read the way sbatch reads them, values kept to the letter. Reading only; nothing here knows what
 * a trial is. */
#ifndef DT_SUBMISSION_H
#define DT_SUBMISSION_H

#include "util/util.h"

/* What an option of sbatch means for a tuning. */
enum dt_option_class {
    DT_OPT_SHAPE,  /* size of the job: tasks, nodes, CPUs, memory, disk, GPUs; the expansion decides
                      it anew */
    DT_OPT_TRIAL,  /* how and where the job runs; every component of every trial gets it as given */
    DT_OPT_LEADER, /* the same, but Slurm takes it from a heterogeneous job's first component only
                    */
    DT_OPT_TUNER,  /* belongs to the tuning job alone: output files, dependency, begin, hold, wait,
                      ... */
    DT_OPT_REFUSE, /* cannot be tuned: array, ...; `why` says what to do instead */
    DT_OPT_DT,     /* --dt-...: ours */
};

/* What sbatch demands of an option's argument; the rest is left to sbatch and slurmctld. */
enum dt_option_value {
    DT_VAL_ANY,
    DT_VAL_COUNT,    /* whole number > 0 */
    DT_VAL_COUNT0,   /* whole number >= 0 */
    DT_VAL_NODES,    /* 4, 2-4, 1k */
    DT_VAL_MEM,      /* 4G */
    DT_VAL_TIME,     /* 1-12:00:00 */
    DT_VAL_SWITCHES, /* COUNT[@TIME] */
    DT_VAL_FILE,     /* a file's name, not the number of an open descriptor */
};

struct dt_sbatch_option {
    const char *name; /* long name, "cpus-per-task" */
    int short_name;   /* 'c', or 0 */
    int has_arg;      /* no_argument, required_argument, optional_argument of <getopt.h> */
    const char *env;  /* "SBATCH_..." that gives its value, or NULL */
    enum dt_option_class class;
    enum dt_option_value value;
    const char *why; /* DT_OPT_REFUSE only: the reason and what to do instead */
    const char
        *same_as; /* another spelling of this option, or NULL; an option read has that name */
};

enum dt_origin { DT_FROM_SCRIPT, DT_FROM_ENV, DT_FROM_ARGV };

struct dt_option {
    const struct dt_sbatch_option *def; /* NULL for a foreign option (another SPANK plugin's) */
    char *name;                         /* full long name */
    char *value;                        /* NULL where none was given */
    enum dt_origin origin;
    int line;        /* of the script, for DT_FROM_SCRIPT */
    const char *var; /* the environment variable, for DT_FROM_ENV */
};

struct dt_submission {
    /* In sbatch's order of precedence: script, environment, command line. What sbatch ignores is
     * not here: an option undone by a later one (--exclusive by --oversubscribe, a memory form by
     * another, ...), the wrap, quiet, verbose and help of a script. Values given in parts are
     * whole: --mail-type twice, SBATCH_WAIT4SWITCH. */
    struct dt_option *options;
    size_t n;
    char *script_name; /* as the user gave it; for messages */
    char *script_path; /* as found; "--wrap" or "standard input" where it came from there */
    char *script;      /* its text, NUL-terminated; NULL after dt_submission_from_json() */
    size_t script_len;
    struct dt_strv args;     /* the script's own arguments */
    struct dt_strv warnings; /* "train.sh:9: ...": what sbatch accepts and the user hardly meant;
                                one line each */
};

#define DT_SCRIPT_MAX (4U << 20) /* slurmctld's default max_script_size */

/* Reads a submission. `argv` is sbatch's (argv[0] included) or that of dt-sbatch. `env` is an
 * environ-style array. A script from standard input is read from `stdin_fd` (-1: not allowed, an
 * error says why); a regular file that was read to its end already is read again from its start, a
 * pipe is read as it is. Refuses what sbatch would refuse (no shebang, CRLF, binary, directory,
 * hetjob where we must make it ...) with place ("train.sh:4: ...") and cure. Foreign long options
 * are looked up in the answer of `sbatch --help`, run once as `sbatch` (a path; NULL, or no answer:
 * then a foreign option needs the form --name=value). With --help, --usage or --version on the
 * command line no script is read (script and paths are NULL), as sbatch reads none. Not for several
 * threads: it uses getopt_long(). Returns NULL on error. */
struct dt_submission *dt_submission_read(char *const *argv, char *const *env, int stdin_fd,
                                         const char *sbatch, struct dt_error *e);
void dt_submission_free(struct dt_submission *s);

/* The option in force (the last given), or NULL. `name` may be a foreign option's or another
 * spelling. */
const struct dt_option *dt_submission_get(const struct dt_submission *s, const char *name);
/* Its value; NULL where the option or its value is absent. */
const char *dt_submission_value(const struct dt_submission *s, const char *name);
/* "train.sh:4" or "--ntasks" or "SBATCH_PARTITION": where an option stands, for messages. Caller
 * frees. */
char *dt_option_place(const struct dt_submission *s, const struct dt_option *o);
/* The same with the option's name: "train.sh:4: --ntasks". Caller frees. */
char *dt_option_title(const struct dt_submission *s, const struct dt_option *o);
/* dt_fail_at() the option's title. */
int dt_fail_at_option(const struct dt_submission *s, const struct dt_option *o, struct dt_error *e);

/* A warning of the first line of the script that says a launcher's size as a number ("train.sh:9:
 * --nnodes 2 is ..."), for submissions whose workers vary; NULL where there is none. Caller frees.
 */
char *dt_submission_fixed_size(const struct dt_submission *s);

/* {"options": [["partition","main"],["exclusive",null],...], "args": [...], "script_path": "..."}:
 * options in force only (of a repeatable --dt-param all), in order, without the script's text. */
struct json_object *dt_submission_to_json(const struct dt_submission *s);
struct dt_submission *dt_submission_from_json(struct json_object *o, struct dt_error *e);

/* The table for the Slurm version of <slurm/slurm.h>, ended by an entry without a name. */
extern const struct dt_sbatch_option dt_sbatch_options[];
/* By full long name (not an abbreviation), or NULL. */
const struct dt_sbatch_option *dt_sbatch_option_find(const char *name);

/* A value written so that sbatch's #SBATCH parser reads it back to the letter behind `--name=` (not
 * as a word of its own: sbatch takes an empty one for the end of the line). NULL, with an error,
 * where it cannot be written (newline, other control characters). Caller frees. */
char *dt_sbatch_quote(const char *value, struct dt_error *e);

#endif
