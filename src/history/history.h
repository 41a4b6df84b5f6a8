/* history: what all studies have found, kept for later ones. A folder of JSON lines, a file for
 * each workload, to which every study appends one record when it ends; nobody ever changes a line.
 */
#ifndef DT_HISTORY_H
#define DT_HISTORY_H

#include "optimizer/optimizer.h"
#include "spec/spec.h"

/* ---- what is the same workload (workload.c) ----
 *
 * Two submissions are of the same workload if the same program runs and the same is asked of it.
 * Only then may one take over what the other has found.
 *
 *  - The program is the script's text and the script's arguments; in the text neither empty lines,
 * nor lines that are only a comment (so no #SBATCH line either), nor blanks at a line's end matter;
 * the first line does, if it names the interpreter. So a program may be submitted with other tasks,
 * nodes, time or partition, under another name and from another folder, and is the same; with
 * another command, or another argument of its script, it is another. What a script calls is not
 * looked at, nor is the environment. Where that is too fine or too coarse, SPEC's "history":
 * {"key": "..."} stands in its place.
 *  - What is asked is the objective, the target, the quality, and the names of the hyperparameters.
 * Their domains, the DT configuration's, constraints, limits and seed say where and how long one
 * searches, not what for.
 *
 * The hashes are FNV-1a of 64 bits (G. Fowler, L. C. Noll, K.-P. Vo): an index into one user's own
 * folder. */
struct dt_workload {
    char program[17];   /* hexadecimal; of the key where there is one */
    char task[17];      /* what is asked */
    char script[17];    /* of the script's text alone */
    char own[17];       /* of the script and its arguments, whether there is a key or not */
    char signature[34]; /* program-task */
};
void dt_workload_make(struct dt_workload *w, const struct dt_spec *spec, const char *script,
                      const struct dt_strv *args);
/* The hash of a script's text as in dt_workload.script. */
void dt_workload_script(const char *script, char hash[17]);
/* Puts what the workload is made of into a record. */
void dt_workload_to_json(const struct dt_workload *w, const struct dt_spec *spec,
                         const struct dt_strv *args, struct json_object *record);

/* ---- the folder (history.c) ---- */

/* $DT_TUNE_HISTORY, else what dt-tune.conf says, else $XDG_DATA_HOME/dt-tune/history, else
 * ~/.local/share/dt-tune/history; absolute, need not exist. Caller frees. NULL where nobody knows the user's home. */
char *dt_history_dir(void);

/* Appends a record to the file of its "signature" (as the schema in dt-tune(1) has it). Safe with
 * others that append at the same time; a record is there whole or not at all. Waits at most 20
 * seconds for the others. */
int dt_history_append(const char *dir, struct json_object *record, struct dt_error *e);

/* Takes out of the folder every record that `drop` wants to be rid of, and counts them in *n; with
 * `pretend` it only counts. Lines that are no records stay. */
int dt_history_prune(const char *dir, bool (*drop)(void *arg, struct json_object *record),
                     void *arg, bool pretend, size_t *n, struct dt_error *e);

struct dt_history {
    struct json_object **v; /* of each study the last record, the study that ended last first */
    size_t n;
    struct dt_strv warnings; /* one line for each line that was passed over */
};
/* Reads the file of one signature, or all (NULL). A folder that is not there is an empty history.
 * Without `whole` the records lack "observations" and "space", which are nearly all of them. */
int dt_history_read(const char *dir, const char *signature, bool whole, struct dt_history *h,
                    struct dt_error *e);
void dt_history_free(struct dt_history *h);

/* The study of that name or folder that ended last, or NULL. Borrowed. */
struct json_object *dt_history_study(const struct dt_history *h, const char *name);
/* Whether the record is of the workload that a user means by `key`: SPEC's own, or the beginning of
 * the signature. */
bool dt_history_has_key(struct json_object *record, const char *key);

/* ---- a study's record in forms that other programs read (export.c) ---- */

/* A row an observation: trial, the parameters, status, value, duration_s, nodes, and each metric as
 * metric:NAME. */
void dt_export_csv(FILE *f, struct json_object *record);
/* JSON lines, as dt-tune suggest reads them. */
void dt_export_observations(FILE *f, struct json_object *record);
/* A file for Optuna's JournalStorage. Times of day are made up of the durations, one trial after the
 * other up to the end of the study. */
void dt_export_optuna(FILE *f, struct json_object *record);

/* ---- which configuration to apply (apply.c) ---- */

struct dt_applied {
    struct json_object *config; /* what the study found best; owned */
    char *text;                 /* "study 123 (time 3.21)"; owned */
    char *coordinator;          /* that its trials had, see spec.h, or NULL; owned */
};
/* The best configuration of the workload's last study in which a trial succeeded; where there is
 * none, that of the last study of the same program, which must be of the same objective if
 * `objective_asked`. `script` is the script's name for messages. */
int dt_history_find(const char *dir, const struct dt_workload *w, const struct dt_spec *spec,
                    bool objective_asked, const char *script, struct dt_applied *a,
                    struct dt_error *e);
/* That of the study that is meant by a folder, the job id of one in this folder, a name in the
 * history, or a key. `dir` may be NULL (there is no history). */
int dt_history_find_study(const char *dir, const char *study, struct dt_applied *a,
                          struct dt_error *e);
void dt_applied_free(struct dt_applied *a);
/* The SPEC document of a job in that configuration: each parameter has the one value, the layout is
 * what the study meant by it, and so is the coordinator. A key "layout" that the space will not have is taken out of the
 * configuration. The caller puts() the result. */
struct json_object *dt_history_spec(struct json_object *config, const char *coordinator);

/* ---- for a warm start (past.c) ---- */

/* Past observations on the present space. One whose configuration lacks a parameter, has one more,
 * or lies outside of the domains is not among them; absent servers count as ps=0, an absent layout
 * as packed. Constraints are not looked at, nor what the cluster can run. Of the same workload a
 * NaN is what the script itself has; an observation of another program has none. obs[i].again
 * counts from 1 within its study: 1 + index - first. */
/* Studies of the workload; with `others` also those of other programs of which the same is asked
 * (objective, target, quality, hyperparameters by name). The study in folder `not_this` (or NULL)
 * is left out: a resumed study knows its own trials. Cost is in node-seconds with `by_nodes`, else
 * in seconds. A damaged line is no error; the caller frees by dt_past_free(). NULL where the folder
 * cannot be read. */
struct dt_past *dt_history_load(const char *dir, const struct dt_workload *w, bool others,
                                const char *not_this, const struct dt_space *space, bool by_nodes,
                                struct dt_error *e);
/* The studies of these names, or folders, whatever their program. NULL, with an error, where one is
 * not there or was not asked the same. */
struct dt_past *dt_history_load_named(const char *dir, const struct dt_workload *w,
                                      const struct dt_strv *names, const struct dt_space *space,
                                      bool by_nodes, struct dt_error *e);
/* Adds one study, by its record in the history; one of which nothing on the space ran is left
 * out. */
void dt_past_add(struct dt_past *p, const struct dt_space *space, struct json_object *record,
                 bool same, bool by_nodes);
/* What a study keeps of its past, so that it goes on from the same when it is resumed: its first
 * DT_PAST_STUDIES studies. From anything but such a list an empty past is made. */
#define DT_PAST_STUDIES 8
struct json_object *dt_past_to_json(const struct dt_past *p, const struct dt_space *space);
struct dt_past *dt_past_from_json(struct json_object *all, const struct dt_space *space);
void dt_past_free(struct dt_past *p);

#endif
