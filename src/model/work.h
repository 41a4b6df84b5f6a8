/* The law of work: how long a unit of work takes on a DT configuration, learnt from few runs by looking at how busy
 * their workers were.
 *
 * The time of a unit is what the workers compute plus what they wait. The first shrinks with the workers (the work is cut
 * among them) but for a part that each does; the second is the exchange with the servers: it grows with the workers that
 * a server has to serve, and has parts that depend on servers or workers alone. These are the terms of Optimus (Peng et
 * al., EuroSys 2018; see speed.h), but as both times are measured, one run already tells two of them apart, where speeds
 * alone need as many runs as there are terms. All other terms are held small until runs speak for them. */
#ifndef DT_WORK_H
#define DT_WORK_H

#include "space/space.h"

#define DT_WORK_BUSY 2
#define DT_WORK_WAITING 4

struct dt_worked {
    const double *x; /* borrowed */
    double pace;     /* seconds a unit of work; above 0 */
    double busy;     /* fraction of the time in which its workers computed, 0 to 1 */
};

struct dt_work {
    double busy[DT_WORK_BUSY], waiting[DT_WORK_WAITING]; /* seconds; none is negative */
};

/* False where it is of no use: no number of workers in the space, or nothing was observed. */
bool dt_work_fit(const struct dt_space *s, const struct dt_worked *o, size_t n, struct dt_work *law);
/* Seconds a unit of work at x. */
double dt_work_pace(const struct dt_space *s, const double *x, const struct dt_work *law);

#endif
