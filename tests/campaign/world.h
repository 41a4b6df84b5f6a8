/* world: a cluster that lives on while tuners die.
 *
 * The cluster is a measured table under a virtual clock (backend replay) in this process; a tuner is a child that runs the
 * whole study on it, with a real journal, through a backend of its own that asks here for everything. The clock stands still
 * while no tuner runs. */
#ifndef DT_CAMPAIGN_WORLD_H
#define DT_CAMPAIGN_WORLD_H

#include "backend/backend.h"

struct world;

struct setting {
    const char *name;
    const char *sections; /* of SPEC, with "replay" */
};

/* What befalls a tuner. Points are counted from 1, in the tuner's own order: before, within and after each write to its
 * journal, before and after each fsync of it, before and after each request to the cluster. */
struct fate {
    long kill_at;    /* SIGKILL at this point; 0: never */
    long full_at;    /* from this write on, after half of it, nothing can be written; 0: never */
    int full_by;     /* for this reason, an errno */
    long file_max;   /* bytes that a file of its may have (RLIMIT_FSIZE); 0: any */
    double clock;    /* seconds that the tuner's clock is off */
    long jump_at;    /* with this request to the cluster its clock is set, 0: never; */
    double jump;     /* by so many seconds */
};

enum outcome {
    TUNER_DONE,   /* the study is finished */
    TUNER_KILLED, /* as its fate was */
    TUNER_FAILED, /* it ended with an error */
};

/* Exits where the table cannot be read. `journal` is the path of the study's journal, which need not be there. */
struct world *world_new(const struct setting *s, const char *table, const char *journal);
void world_free(struct world *w);

/* Runs one tuner to its end, whatever that is. */
enum outcome world_tune(struct world *w, const struct fate *fate);
/* Of the last tuner: what it said when it ended (its error, or all that the study came to), and how many points it passed,
 * known where it was not killed. */
const char *world_last_words(const struct world *w);
long world_points(const struct world *w);

/* What went wrong on the cluster: runs that were submitted twice, jobs that nobody waits for any more. NULL: nothing. Caller
 * frees. */
char *world_complaint(const struct world *w);

#endif
