/* The --dt-... options of sbatch: one table for the SPANK plugin, dt-sbatch and their --help. */
#ifndef DT_OPTIONS_H
#define DT_OPTIONS_H

enum dt_option_arg { DT_ARG_REQUIRED = 1, DT_ARG_OPTIONAL = 2, DT_ARG_NONE = 0 }; /* SPANK's has_arg numbers */

struct dt_option_entry {
    const char *name;
    const char *arginfo;
    enum dt_option_arg has_arg;
    const char *usage;
};

static const struct dt_option_entry dt_option_table[] = {
    {"dt-tune", "SPEC.json", DT_ARG_OPTIONAL,
     "find the distributed-training configuration and hyperparameters that suit this job best"},
    {"dt-ps", "RANGE", DT_ARG_REQUIRED, "parameter servers to try: 0-4, 1,2,4 or 0-16:4 (0: all-reduce)"},
    {"dt-workers", "RANGE", DT_ARG_REQUIRED, "workers to try"},
    {"dt-param", "NAME=DOMAIN", DT_ARG_REQUIRED,
     "hyperparameter: lr=1e-4..1e-1:log, batch=32..1024:log2, opt={sgd,adam}; repeatable"},
    {"dt-objective", "WHAT", DT_ARG_REQUIRED,
     "time (default), throughput, cost, turnaround, min:METRIC or max:METRIC"},
    {"dt-target", "METRIC>=X", DT_ARG_REQUIRED, "a trial is done when its metric gets there"},
    {"dt-max-configs", "N", DT_ARG_REQUIRED, "try at most N configurations (default 60)"},
    {"dt-min-improve", "PCT[:WINDOW]", DT_ARG_REQUIRED,
     "stop when the best improved by no more than PCT % over the last WINDOW configurations (default 2:5)"},
    {"dt-parallel", "N", DT_ARG_REQUIRED, "trials at once (default 1; layout steps: auto, as many as fit)"},
    {"dt-deadline", "TIME", DT_ARG_REQUIRED, "end the study after this time (Slurm's time format)"},
    {"dt-repeats", "N", DT_ARG_REQUIRED, "measure what may be recommended again, by at most N trials (default 8)"},
    {"dt-max-node-hours", "HOURS", DT_ARG_REQUIRED, "end the study when its trials have taken so many node-hours"},
    {"dt-layout", "LAYOUT", DT_ARG_REQUIRED, "auto (default), het, packed or steps"},
    {"dt-dry-run", 0, DT_ARG_NONE, "print the search space and the first trials' scripts, submit nothing"},
    {"dt-resume", "DIR|JOBID", DT_ARG_REQUIRED, "continue a study"},
    {"dt-apply", "STUDY", DT_ARG_OPTIONAL,
     "no tuning: submit this job in the best configuration of its last study, or of STUDY"},
};

#define DT_OPTION_COUNT (sizeof(dt_option_table) / sizeof(dt_option_table[0]))

#endif
