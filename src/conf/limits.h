/* limits: dt-tune.conf as the tools keep to it. They are the user's own processes, so this stops
 * nobody who means to get around it; what must hold is enforced by the plugin in slurmctld. */
#ifndef DT_LIMITS_H
#define DT_LIMITS_H

#include "conf/conf.h"
#include "util/util.h"

/* A file beside SLURM_CONF, else in the folder of slurm.conf that dt-tune was built for. Caller
 * frees. */
char *dt_beside_slurm_conf(const char *name);
/* Where dt-tune.conf is: there. Caller frees. */
char *dt_conf_path(void);
/* Reads it; the error names the file. */
int dt_conf_read(struct dt_conf *c, struct dt_error *e);
/* Whether this user may tune, with this account (NULL: the default one, which nobody here knows).
 */
int dt_conf_may_tune(const struct dt_conf *c, const char *account, struct dt_error *e);
/* Puts the limits on the SPEC document `doc`, which `name` calls in errors: what it leaves open is
 * limited, what it asks for beyond a limit is an error. */
int dt_conf_limit(const struct dt_conf *c, struct json_object *doc, const char *name,
                  struct dt_error *e);
/* The folder that it gives for this user's history, or NULL. Caller frees. */
char *dt_conf_history(void);

#endif
