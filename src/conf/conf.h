/* conf: what the administrator says of dt-tune, in dt-tune.conf beside slurm.conf. The same text is
 * read by the tools, as the user, and by the plugin in slurmctld: nothing here needs more than
 * libc, ends the program or says a word. */
#ifndef DT_CONF_H
#define DT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#define DT_CONF_NAME "dt-tune.conf"

struct dt_conf {
    char *refuse; /* nobody may tune, for this reason; NULL: they may */
    /* Names with commas between them; NULL: all. */
    char *users, *groups, *accounts;
    /* Limits on a study; 0: none. */
    uint64_t parallel, configs;
    double node_hours;
    /* The tuning job; NULL and 0: dt-tune's own. */
    char *tuner_partition;
    uint64_t tuner_mem_mib, tuner_time_min;
    char *history; /* absolute; %u stands for the user's name; NULL: in the user's home */
};

/* Reads the text: lines Key=Value, '#' begins a comment. Returns -1 and leaves in *why, the
 * caller's, what is wrong with which line; then `c` is as it was. */
int dt_conf_parse(const char *text, struct dt_conf *c, char **why);
/* The same from a file of at most 64 KiB. One that is not there says nothing: all fields are 0. */
int dt_conf_load(const char *path, struct dt_conf *c, char **why);
void dt_conf_free(struct dt_conf *c);
/* Whether the name is among those with commas between them. */
bool dt_conf_has(const char *names, const char *name);

#endif
