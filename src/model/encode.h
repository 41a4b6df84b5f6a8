/* Encoding: configurations as points for the model. */
#ifndef DT_ENCODE_H
#define DT_ENCODE_H

#include "model/model.h"
#include "space/space.h"

enum dt_scale {
    DT_SCALE_LINEAR,
    DT_SCALE_LOG,    /* of x + shift: counts, and what the user calls logarithmic */
    DT_SCALE_CHOICE, /* one-hot: two different labels are 1 apart */
};

struct dt_encoding {
    const struct dt_space *space; /* borrowed */
    struct dt_kernel kernel;      /* a group a parameter */
    struct dt_axis {
        enum dt_scale scale;
        double shift, low, range; /* low and range on the scale itself */
        size_t column;            /* the first */
    } * axes;
};

/* Ordinary parameters come to lie in [0, 1]. */
struct dt_encoding *dt_encoding_new(const struct dt_space *space);
void dt_encoding_free(struct dt_encoding *e);
/* out: e->kernel.columns values. A parameter that is NaN lies in the middle of its axis, of labels at none of them: so
 * there is no distance between two configurations in a parameter that is inactive in both, as Hutter and Osborne ("A
 * kernel for hierarchical parameter spaces", 2013) demand, and one value stands for all that is inactive, as where SMAC
 * imputes the default (Hutter, Hoos and Leyton-Brown 2011). */
void dt_encode(const struct dt_encoding *e, const double *x, double *out);
/* Squared distance of two encoded points. */
double dt_distance2(const struct dt_kernel *k, const double *a, const double *b);

#endif
