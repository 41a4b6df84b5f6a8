#include "backend/slurm_private.h"

#include <math.h>

double dt_pace_turn(struct dt_pace *p, double now)
{
    p->last = fmax(p->last, now - p->burst * p->every) + p->every;
    return fmax(p->last, now);
}
