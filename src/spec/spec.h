/* spec: what the user asked for. SPEC is JSON; --dt-... options are the same in another spelling and are merged into
 * it first, so there is one reader. Every error names the place (file and line, or the option). */
#ifndef DT_SPEC_H
#define DT_SPEC_H

#include "allocator/allocator.h"
#include "space/space.h"
#include "stopping/prune.h"
#include "spec/submission.h"

enum dt_objective_kind {
    DT_OBJECTIVE_TIME,       /* seconds from a trial's start to its end (or to the target), without queue wait */
    DT_OBJECTIVE_TURNAROUND, /* the same with queue wait */
    DT_OBJECTIVE_COST,       /* run time x what Slurm bills the job (TRESBillingWeights; by default its CPUs) */
    DT_OBJECTIVE_THROUGHPUT, /* the metric "throughput" if reported, else steps a second from the metric "step" */
    DT_OBJECTIVE_METRIC,     /* the last value of a metric that the program reports */
};

/* Who tells what the tasks of running trials use. */
enum dt_monitor_source {
    DT_MONITOR_AUTO,  /* our own samplers, and Slurm of runs where there are none */
    DT_MONITOR_AGENT, /* our own samplers */
    DT_MONITOR_SLURM, /* Slurm's accounting */
};

enum dt_layout_choice { DT_LAYOUT_AUTO, DT_LAYOUT_HET, DT_LAYOUT_PACKED, DT_LAYOUT_STEPS };

/* A metric and where it should be; metric is NULL where nothing is asked for. */
struct dt_bound {
    char *metric;
    double value;
    bool at_least; /* else at most */
};
/* How much better x is than asked for, in the metric's unit; NaN where x is. */
double dt_bound_margin(const struct dt_bound *b, double x);

/* Where a measured table keeps what; see the `replay` backend. Names are columns. */
struct dt_replay_spec {
    struct dt_strv params, columns; /* params.v[i] stands in column columns.v[i] */
    struct dt_strv where_columns, where_values;
    char *objective; /* NULL: no replay section */
    bool maximize;
    char *duration, *nodes, *status; /* or NULL */
    char *quality; /* the column of the quality's metric; by default of the same name */
    char *step; /* the rows of a configuration are the course of one run, by this column; or NULL */
    struct dt_strv ok;
    bool usage;                /* running trials are re-allocated, by these columns: */
    char *ps_cpu, *worker_cpu; /* how busy the CPUs of each role's tasks were; or NULL */
    double all_busy;           /* the value of both that stands for 100 % */
    double restart;            /* seconds that each start of a run waits for */
    struct json_object
        *submitted; /* the first trial's configuration; borrowed from the document; or NULL */
};

/* Whether and how running trials are re-allocated. */
struct dt_reallocate {
    struct dt_allocator allocator; /* its restart_s is not used; rule DT_ALLOCATE_NONE: they are not */
    size_t most;                   /* of one trial */
    double cooldown;               /* seconds from a restart to the next decision */
    bool in_place;                 /* programs go on where their last workers are ended */
    double work;                   /* how far a whole run goes by its own count; 0: as trials show */
};

/* How a program is asked for a checkpoint, and answers. */
struct dt_checkpoint {
    int signal;
    double grace;  /* seconds that it may take */
    int exit_code; /* by which it says that it wrote one */
};

struct dt_spec {
    struct json_object *json; /* the merged document, as journaled; owned */
    struct dt_param *params;  /* DT parameters in the order of SPEC, then hyperparameters */
    size_t nparams;
    double *submitted; /* a hyperparameter's value in the job as submitted ("default"), NaN if unknown */
    struct dt_strv constraints;
    char *candidates; /* path of a CSV file, or NULL */
    char *constraints_place, *candidates_place; /* "SPEC.json:12", for messages; NULL where it came from no file */
    enum dt_layout_choice layout;

    enum dt_objective_kind objective;
    char *metric;  /* DT_OBJECTIVE_METRIC */
    bool maximize; /* the objective is to be large */

    struct dt_bound target;  /* a trial is done when it is there */
    struct dt_bound quality; /* a trial that ends without it is no good, however fast it was */

    char *algorithm;
    uint64_t seed;
    size_t max_configs, min_configs, window, max_failures, grid_levels;
    size_t parallel; /* trials at a time; SIZE_MAX: as many as fit */
    double min_improve; /* fraction, 0.02 */
    double deadline;    /* seconds for the whole study; INFINITY */
    double max_node_hours; /* of all trials together; INFINITY */
    struct dt_pruner pruner;
    struct dt_reallocate reallocate;
    struct dt_checkpoint checkpoint;
    size_t repeats; /* at most so many trials in a row measure again what is to be recommended */

    /* Text patterns: patterns.v[i] finds the metric pattern_names.v[i] in a line of a trial's output; see pattern.h. */
    struct dt_strv pattern_names, patterns;
    char *step; /* the metric that says how far a trial is; NULL: epoch, or else step */

    char *coordinator; /* a task more beside the first: "chief" or "scheduler"; NULL: none */

    enum dt_monitor_source monitor_source;
    double monitor_period; /* seconds between samples of what running trials use; 0: none are taken */

    bool no_bind;   /* tasks sit where Slurm puts them */
    char *topology; /* a folder of nodes' topologies, an absolute path; NULL: each node is asked */

    bool no_history; /* it neither learns from earlier studies nor leaves a record for later ones */
    struct dt_strv history_from; /* the studies to learn from; empty: those of the same workload */
    char *history_key; /* stands for the program; NULL: the script does */

    struct dt_replay_spec replay;
};

/* The SPEC document of a submission: the file named by --dt-tune=FILE (if any), with the other --dt-... options put in.
 * `*text` and `*name` (caller frees) get the file's text and name for messages, or NULL. */
struct json_object *dt_spec_merge(const struct dt_submission *s, char **text, char **name,
                                  struct dt_error *e);

/* Whether a parameter of this name belongs under "dt". */
bool dt_spec_is_dt_name(const char *name);
/* Whether kinds of nodes are among what is searched. */
bool dt_spec_has_kinds(const struct dt_spec *s);
/* Puts the parameters of one configuration into the document, each with that one value, where it does not name them. */
void dt_spec_add_config(struct json_object *doc, struct json_object *config);

/* Checks the whole document. `text` (or NULL) is the text it came from, for line numbers; `name` names it in errors
 * (NULL: they tell no place, for the caller knows it). Takes its own reference to json. */
struct dt_spec *dt_spec_parse(struct json_object *json, const char *text, const char *name,
                              struct dt_error *e);
/* Reads and parses a file. */
struct dt_spec *dt_spec_read(const char *path, struct dt_error *e);
void dt_spec_free(struct dt_spec *s);

/* The text pattern of a metric, borrowed; NULL where it has none. */
const char *dt_spec_pattern(const struct dt_spec *s, const char *metric);
/* Whether the objective is a trial's run time, or grows with it. */
bool dt_spec_objective_is_time(const struct dt_spec *s);
/* Whether the search learns by a model, so that cheap trials and earlier studies are of use to it. */
bool dt_spec_has_model(const struct dt_spec *s);
/* "time", "max:accuracy": the objective as the user writes it. Caller frees. */
char *dt_spec_objective_text(const struct dt_spec *s);

#endif
