/* What the tools share: exit codes, how errors reach the user, and the subcommands, a file each. */
#ifndef DT_TOOLS_H
#define DT_TOOLS_H

#include "report/report.h"

enum { EXIT_DONE = 0, EXIT_WORK_FAILED = 1, EXIT_USAGE = 2 };

/* Prints "dt-tune: TEXT", frees the error, returns `code`. */
int fail_with(struct dt_error *e, int code);
/* Prints the text, or where that is NULL the object on a line; takes both over. */
void print_either(char *text, struct json_object *o);

int cmd_check(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_expand(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_metric(int argc, char **argv);
int cmd_prepare(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_suggest(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_watch(int argc, char **argv);

/* Puts the rows of a CSV file into the history `dir`, as a study of the workload that SPEC and the
 * script (a path and its arguments, or just NULL) make; `value` (or NULL) is the objective's
 * column. */
int import_history(const char *dir, const char *csv, const char *spec, const char *value,
                   char *const *script, struct dt_error *e);

/* ---- a study to look at (load.c) ---- */

struct loaded {
    struct dt_setup *setup;
    struct dt_study *study;
    struct dt_chronicle chronicle;
    char *name;
};
/* The folder of a study that is meant by its path, or by the job id of one in this folder. Caller
 * frees. */
char *find_study(const char *command, const char *what, struct dt_error *e);
/* Reads its journal; loaded_free() is safe whatever it returns. */
int load_study(const char *dir, struct loaded *l, struct dt_error *e);
/* Takes one record of a journal, the first ones first; `arg` is a struct loaded, empty at first. */
int loaded_take(void *arg, struct json_object *record, struct dt_error *e);
void loaded_free(struct loaded *l);

/* ---- the page (page.c) ---- */

/* Where a file of dt-tune's data is, or should be. Caller frees. */
char *data_file(const char *name);
/* The report of the study of that name as one HTML file; job: the job's name, NULL: there is none.
 * Caller frees. */
char *report_page(const char *name, const char *job, const struct dt_study *s,
                  const struct dt_chronicle *c, struct dt_error *e);
/* Writes DIR/report.html by what the journal there has. */
int write_page(const char *dir, struct dt_error *e);

/* ---- how the study goes, in squeue (board.c) ---- */

struct board {
    uint32_t job; /* whose comment it is; 0: of none */
    double due;   /* not to be changed before, by the monotonic clock */
    char *shown;
};
/* A job that has a comment of another's keeps it. */
struct board board_new(uint32_t tuner_job);
void board_show(struct board *b, const struct dt_study *s);
void board_free(struct board *b);

/* Records go to the folder of the submission, or of the study that is resumed: it must be writable. */
int check_folder(const struct dt_setup *s, struct dt_error *e);
/* What sbatch accepts and the user hardly meant, one line each, on stderr. */
void print_warnings(const struct dt_submission *s);
/* Of a size in the script that no trial changes, though the workers vary. */
void warn_of_fixed_size(const struct dt_setup *s);
/* A cluster described in a JSON file, for commands that must not ask Slurm: what a job may use, or
 * a whole one of which it is what the submission (NULL: one without options) may use. */
struct dt_cluster *read_cluster(const char *path, const struct dt_submission *sub,
                                struct dt_error *e);
/* The search space of a SPEC file for a job of so many tasks, on a cluster described in a file
 * (NULL: on any). sketch_free() is safe whatever sketch_read() returns. */
struct sketch {
    struct dt_spec *spec;
    struct dt_cluster *cluster;
    struct dt_job job;
    struct dt_space_source source; /* which the space looks at as long as it is there */
    struct dt_space *space;
    const char *why_layout;
};
int sketch_read(struct sketch *k, const char *spec, const char *cluster, size_t tasks,
               struct dt_error *e);
void sketch_free(struct sketch *k);
/* A whole one, as dt-tune topo --save writes it. */
struct dt_system *read_system(const char *path, struct dt_error *e);
/* dt-tune topo of one node (machine.c): `path` is a file of hwloc's, or "here"; with `plan`, tasks like "ps:2,4xworker:4:1",
 * who of them would sit where. */
enum topo_format { TOPO_TEXT, TOPO_JSON, TOPO_XML };
int print_machine(const char *path, const char *plan, enum topo_format format, struct dt_error *e);
/* Asks a node of every kind, by a short job, and keeps its topology in the user's cache. */
int gather_machines(const struct dt_system *s, struct dt_error *e);
/* Prints what the cache has of the kind, if anything. */
void print_known_machine(const struct dt_node_class *kind);
/* The batch script of a configuration, as a job of its own; what it leaves out is as submitted (NULL: all). Caller frees. */
char *expand_config(const struct dt_setup *s, struct json_object *config, struct dt_error *e);
/* The shape of a trial in the study's layout. */
void trial_shape(const struct dt_setup *s, const double *x, struct dt_shape *shape);
/* The sbatch command for the script of expand_config(), without the script: the options that cannot stand in it. Takes
 * SBATCH_ variables out of the environment, since what they say does. */
void config_command(const struct dt_setup *s, struct dt_strv *argv);
void add_option(struct dt_strv *argv, const struct dt_option *o);
/* Tells on stderr which configuration --dt-apply has found, if that is what is being done, unless --quiet. */
void print_applied(const struct dt_setup *s);
/* Becomes the sbatch that submits the job in the configuration of the setup. Returns only on errors. */
int exec_config(const struct dt_setup *s, struct dt_error *e);
/* Prints the space and the scripts of the first trials: --dt-dry-run. */
int print_dry_run(const struct dt_setup *s, struct dt_error *e);
/* Runs a study to its report. `study`: its name; `dir`: its absolute folder; `tuner_job`: 0 in the foreground.
 * `answers`: where the program that asks for trials on standard input reads, in a study whose hyperparameters it chooses;
 * else -1. Takes the setup over. Returns an exit code. */
int run_study(struct dt_setup *s, const char *study, const char *dir, uint32_t tuner_job, int answers);
/* The same in the foreground, in a folder of this process or of the study to resume. */
int run_study_here(struct dt_setup *s, int answers);
/* PATH and the arguments of the submission, as one types them in a shell. Caller frees. */
char *command_text(const char *path, const struct dt_submission *s);
/* "ps=1 workers=4 opt=adam", "-" where it is no configuration. Caller frees. */
char *config_words(struct json_object *config);
/* The path of a program that lies beside this one. Caller frees. */
char *sibling(const char *name, struct dt_error *e);

#endif
