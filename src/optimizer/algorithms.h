/* The algorithms behind the border, a file each. */
#ifndef DT_ALGORITHMS_H
#define DT_ALGORITHMS_H

#include "optimizer/optimizer.h"

extern const struct dt_optimizer_ops dt_random; /* without replacement */
extern const struct dt_optimizer_ops dt_grid;   /* in order, the last parameter turning fastest */

#endif
