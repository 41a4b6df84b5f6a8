/* The pieces of a system, for the files that make and cut one. Each function frees what its
 * argument points to. */
#ifndef DT_SYSTEM_PRIVATE_H
#define DT_SYSTEM_PRIVATE_H

#include "space/cluster_private.h"
#include "space/system.h"

void dt_node_group_free(struct dt_node_group *g);
void dt_node_kind_free(struct dt_node_kind *k);
void dt_partition_free(struct dt_partition *p);
void dt_switch_free(struct dt_switch *w);

#endif
