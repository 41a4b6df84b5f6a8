/* How what a cluster is made of stands in JSON: shared by the cluster of one job and the system it
 * is taken from. */
#ifndef DT_CLUSTER_PRIVATE_H
#define DT_CLUSTER_PRIVATE_H

#include "space/cluster.h"
#include "space/fields.h"

/* Adders leave out what is not known or not limited; readers read members of the object that `f` is
 * at. */
void dt_put_text(struct json_object *o, const char *key, const char *value);
void dt_put_flag(struct json_object *o, const char *key, bool value);

void dt_put_amounts(struct json_object *o, const char *key, const struct dt_amounts *a);
void dt_take_amounts(struct dt_fields *f, const char *key, struct dt_amounts *a);

void dt_put_class(struct json_object *o, const struct dt_node_class *k); /* but the count */
void dt_take_class(struct dt_fields *f, struct dt_node_class *k);
void dt_class_free(struct dt_node_class *k); /* what it points to */

void dt_places_join(struct dt_places *to, const struct dt_places *from);
void dt_places_free(struct dt_places *p);
/* The member "places", "1-250,300", of as many nodes. */
void dt_put_places(struct json_object *o, const struct dt_places *p);
void dt_take_places(struct dt_fields *f, struct dt_places *p, size_t nodes);

void dt_put_partition_limits(struct json_object *o, const struct dt_partition_limits *l);
void dt_take_partition_limits(struct dt_fields *f, struct dt_partition_limits *l);
void dt_partition_limits_copy(struct dt_partition_limits *to,
                              const struct dt_partition_limits *from);
void dt_partition_limits_free(struct dt_partition_limits *l);

void dt_put_scheduling(struct json_object *o, const struct dt_scheduling *s);
void dt_take_scheduling(struct dt_fields *f, struct dt_scheduling *s);

/* The array "limits". */
void dt_put_limits(struct json_object *o, const struct dt_limits *l, size_t n);
void dt_take_limits(struct dt_fields *f, struct dt_limits **l, size_t *n);
void dt_limits_copy(struct dt_limits *to, const struct dt_limits *from);
void dt_limits_free(struct dt_limits *l); /* what it points to */

#endif
