/* What slurmctld says of one node. */
#include "backend/slurm_private.h"
#include "topology/topology.h"
#include "util/slurm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t dt_slurm_gpus(const char *gres)
{
    struct dt_strv parts = DT_STRV_INIT;
    size_t n = 0;
    dt_strv_split(&parts, gres ? gres : "", ",");
    for (size_t i = 0; i < parts.n; i++) {
        char *p = parts.v[i];
        p[strcspn(p, "(")] = '\0';
        if (!dt_starts_with(p, "gpu:"))
            continue;
        int64_t count;
        if (dt_parse_int64(strrchr(p, ':') + 1, &count) == 0 && count > 0)
            n += (size_t)count;
    }
    dt_strv_free(&parts);
    return n;
}

/* Unknown is what slurmctld has not heard of since it started; from 23.11 on it starts anew to read
 * its configuration. */
bool dt_slurm_usable(const struct node_info *n)
{
    uint32_t base = n->node_state & NODE_STATE_BASE;
    bool off = n->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND);
    return !off && (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED ||
                    base == NODE_STATE_MIXED || base == NODE_STATE_UNKNOWN);
}

struct dt_node_class dt_slurm_size(const struct node_info *n)
{
    const char *features = n->features_act ? n->features_act : n->features;
    size_t cores = (size_t)n->sockets * n->cores, threads = cores ? n->cpus / cores : 1;
    uint64_t kept = n->mem_spec_limit < n->real_memory ? n->mem_spec_limit : 0;
    return (struct dt_node_class){
        .cpus = dt_slurm_node_cpus(n),
        .mem_mib = n->real_memory - kept,
        .tmp_mib = n->tmp_disk,
        .gpus = dt_slurm_gpus(n->gres),
        .threads = threads > 1 ? threads : 1,
        .sockets = n->sockets,
        .cores = n->cores,
        .weight = n->weight,
        .features = (char *)(features ? features : ""),
        .gres = (char *)(n->gres && strcmp(n->gres, "(null)") != 0 ? n->gres : "")};
}

int dt_slurm_node(const char *name, char key[17], struct dt_node_class *size, struct dt_error *e)
{
    node_info_msg_t *nodes = NULL;
    char *copy = dt_xstrdup(name);
    int rc = slurm_load_node_single(&nodes, copy, SHOW_ALL);
    free(copy);
    if (rc != SLURM_SUCCESS)
        return dt_fail(e, "slurmctld does not answer: %s", slurm_strerror(errno));
    if (nodes->record_count == 1) {
        *size = dt_slurm_size(&nodes->node_array[0]);
        dt_topology_key(size, key);
        size->features = size->gres = NULL;
    } else {
        rc = dt_fail(e, "Slurm knows no node %s", name);
    }
    slurm_free_node_info_msg(nodes);
    return rc;
}
