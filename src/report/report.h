/* report: a study in words, JSON and CSV. */
#ifndef DT_REPORT_H
#define DT_REPORT_H

#include "tuner/setup.h"
#include "tuner/tuner.h"

/* What will be searched. */
void dt_report_intro(FILE *f, const struct dt_setup *setup, const char *study, const char *dir);
/* The line that an event is worth, if any. */
void dt_report_event(FILE *f, const struct dt_study *s, const struct dt_event *ev);
/* The lines of all trials that ended. */
void dt_report_trials(FILE *f, const struct dt_study *s);
/* Why it stopped, the best, the gain, the cost. `best_sh` (or NULL) is the path of the script to submit. */
void dt_report_final(FILE *f, const struct dt_study *s, const char *best_sh);

/* {"version":1,"study":...,"objective":...,"stop_reason":...,"complete":bool,"best":{...},"submitted":{...},"gain":...,
 *  "cost":{...},"trials":[{...}]}; the schema is in dt-tune(1). */
struct json_object *dt_report_json(const struct dt_study *s, const char *name);
/* One line a trial, with a header. */
void dt_report_csv(FILE *f, const struct dt_study *s);

#endif
