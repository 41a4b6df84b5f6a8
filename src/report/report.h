/* report: a study in words, JSON, CSV, and as a page of plots. */
#ifndef DT_REPORT_H
#define DT_REPORT_H

#include "tuner/setup.h"
#include "tuner/tuner.h"

/* What is searched, and how; `name` is the study's. */
void dt_report_intro(FILE *f, const struct dt_setup *setup, const struct dt_study *s,
                     const char *name, const char *dir);
/* A value of the objective as people read it. Caller frees. */
char *dt_report_value(const struct dt_study *s, double x);
/* The line that an event is worth, if any. */
void dt_report_event(FILE *f, const struct dt_study *s, const struct dt_event *ev);
/* The lines of all trials that ended, in that order. */
void dt_report_trials(FILE *f, const struct dt_study *s);
/* A trial that ended, the trial of the best configuration by then, or NULL, and the mean of what
 * measured that. */
struct dt_milestone {
    const struct dt_trial *t, *best;
    double mean;
};
/* All trials that ended, in that order. Caller frees. */
struct dt_milestone *dt_report_course(const struct dt_study *s, size_t *n);
/* Why it stopped, the best, the gain, the cost. `best_sh` (or NULL) is the script to submit and its arguments. */
void dt_report_final(FILE *f, const struct dt_study *s, const char *best_sh);

/* {"version":1,"study":...,"objective":...,"stop_reason":...,"complete":bool,"best":{...},"submitted":{...},"gain":...,
 *  "cost":{...},"trials":[{...}]}; the schema is in dt-tune(1). */
struct json_object *dt_report_json(const struct dt_study *s, const char *name);
/* A parameter's name and its domain, as SPEC writes it. The caller puts() it. */
struct json_object *dt_report_param(const struct dt_param *p);
/* The configuration as best.json has it: what is left as the script has it is not in it. The caller puts() it. */
struct json_object *dt_report_config(const struct dt_space *s, const double *x);
/* What led to the best model where it went on from other trials, else NULL:
 * [{"from_step":0,"trial":3,"config":{...}},...]. The caller puts() it. */
struct json_object *dt_report_schedule(const struct dt_study *s);
/* What the history keeps of a study that ended at `now`; the schema is in dt-tune(1). The caller puts() it. */
struct json_object *dt_report_record(const struct dt_setup *setup, const struct dt_study *s, const char *name,
                                     const char *dir, double now);
/* ---- what else one may want (front.c) ---- */

/* What a trial took, what it cost (billed seconds), and its quality; NaN: not known, or no quality is looked at. */
struct dt_merit {
    const struct dt_trial *t;
    double time, cost, quality;
};
/* The metric that tells the quality and which way is good: of SPEC's quality, or the objective's, for which
 * `objective` is filled in. NULL: there is none. */
const struct dt_bound *dt_report_quality(const struct dt_study *s, struct dt_bound *objective);
/* The Pareto front of time, cost and quality: the trials of which no other is better in one and no worse in the others,
 * by the means of what measured their configurations; the fastest first. Caller frees. */
struct dt_merit *dt_report_front(const struct dt_study *s, size_t *n);

/* ---- what trials at lower fidelities were good for (thrift.c) ---- */

struct dt_thrift {
    size_t trials;        /* that ended */
    double run_s, node_s; /* which they took */
    size_t spared;        /* configurations that were tried at lower fidelities alone */
    double spared_run_s, spared_node_s; /* which those are expected to take at the highest */
};
struct dt_thrift dt_report_thrift(const struct dt_study *s);

/* ---- what the roles used (usage.c) ---- */

/* Of the best trial and of the job as submitted, and what to make of it; nothing where no sample was taken. */
void dt_report_usage(FILE *f, const struct dt_study *s);
/* {"ps": {"samples": 12, "cpu": [mean, max], ...}}, of the trial's last run that was sampled. The caller puts() it. */
struct json_object *dt_report_usage_json(const struct dt_trial *t);

/* One line a trial, with a header. */
void dt_report_csv(FILE *f, const struct dt_study *s);

/* ---- the live view (screen.c) ---- */

/* A terminal, and when it is looked at. */
struct dt_screen {
    double now; /* seconds since the epoch */
    size_t columns, rows;
};
/* What a terminal shows of a study: at most so many lines, none wider, of printable characters only.
 * `name`: the study's, `job`: the job's. */
void dt_report_screen(const struct dt_study *s, const char *name, const char *job,
                      struct dt_screen at, struct dt_strv *lines);
/* "7 of 60 trials, best 12.3 s (1.8 x)": the study in a few words. Caller frees. */
char *dt_report_progress(const struct dt_study *s);

/* ---- a page of plots (chronicle.c, views.c, page.c) ---- */

/* What a study's state does not keep: when each run was where, and every word of what it used.
 * Follows from the events alone. Times are seconds since the study's start. */
struct dt_chronicle {
    /* [{"trial":1,"run":1,"submitted":0,"started":3.1,"ended":60,"cause":"ok"},...] */
    struct json_object *runs;
    /* [{"trial":1,"run":1,"role":"ps","t":12,"samples":3,"levels":{"cpu":[mean,max]}},...] */
    struct json_object *usage;
    double start; /* seconds since the epoch; NaN: not begun */
};
struct dt_chronicle dt_chronicle_new(void);
void dt_chronicle_apply(struct dt_chronicle *c, const struct dt_event *ev);
void dt_chronicle_free(struct dt_chronicle *c);

/* What the plots need beyond dt_report_json(), `job` being the job's name (NULL: there is none);
 * the schema is in dt-tune(1). The caller puts() it. */
struct json_object *dt_report_views(const char *job, const struct dt_study *s,
                                    const struct dt_chronicle *c);

/* What a page is made of, as text. */
struct dt_page {
    /* HTML with @TITLE@, @STYLE@, @LIBRARY@, @REPORT@, @VIEWS@ and @SCRIPT@, once and in this order */
    const char *frame;
    const char *style, *library, *script;
    const char *title;
    struct json_object *report, *views;
};
/* The page, which needs nothing beside it, or an error where the frame lacks a place or a script
 * would end too early. Caller frees. */
char *dt_report_page(const struct dt_page *p, struct dt_error *e);

#endif
