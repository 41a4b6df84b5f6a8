/* report: a study in words, JSON and CSV. */
#ifndef DT_REPORT_H
#define DT_REPORT_H

#include "tuner/setup.h"
#include "tuner/tuner.h"

/* What is searched, and how; `name` is the study's. */
void dt_report_intro(FILE *f, const struct dt_setup *setup, const struct dt_study *s,
                     const char *name, const char *dir);
/* The line that an event is worth, if any. */
void dt_report_event(FILE *f, const struct dt_study *s, const struct dt_event *ev);
/* The lines of all trials that ended, in that order. */
void dt_report_trials(FILE *f, const struct dt_study *s);
/* Why it stopped, the best, the gain, the cost. `best_sh` (or NULL) is the script to submit and its arguments. */
void dt_report_final(FILE *f, const struct dt_study *s, const char *best_sh);

/* {"version":1,"study":...,"objective":...,"stop_reason":...,"complete":bool,"best":{...},"submitted":{...},"gain":...,
 *  "cost":{...},"trials":[{...}]}; the schema is in dt-tune(1). */
struct json_object *dt_report_json(const struct dt_study *s, const char *name);
/* The configuration as best.json has it: what is left as the script has it is not in it. The caller puts() it. */
struct json_object *dt_report_config(const struct dt_study *s, const struct dt_trial *t);
/* What the history keeps of a study that ended at `now`; the schema is in dt-tune(1). The caller puts() it. */
struct json_object *dt_report_record(const struct dt_setup *setup, const struct dt_study *s, const char *name,
                                     const char *dir, double now);
/* One line a trial, with a header. */
void dt_report_csv(FILE *f, const struct dt_study *s);

#endif
