/* dt-launch --hydra PROGRAM...: a task of the step that stands for a trial's workers, where mpiexec
 * starts these by itself. Of all tasks on a node the first becomes mpiexec's own process there,
 * which has the others' CPUs, too; the others end at once, and their CPUs stay with the step. */
#include "launch/launch.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 16384

static void add_mask(const char *mask, size_t n, cpu_set_t *set, size_t size)
{
    for (size_t i = 0; i < n && isxdigit((unsigned char)mask[n - 1 - i]); i++) {
        const char digit[] = {mask[n - 1 - i], '\0'};
        for (int bit = 0; bit < 4; bit++)
            if (strtol(digit, NULL, 16) >> bit & 1)
                CPU_SET_S(4 * i + (size_t)bit, size, set);
    }
}

int dt_masks_union(const char *masks, cpu_set_t *set, size_t size)
{
    CPU_ZERO_S(size, set);
    for (const char *at = masks; *at;) {
        size_t n = strcspn(at, ",");
        add_mask(at, n, set, size);
        at += n + (at[n] == ',');
    }
    return CPU_COUNT_S(size, set);
}

/* Where Slurm binds tasks it tells each of all their masks; where it does not, nothing has to be
 * done. */
static void take_all_cpus(void)
{
    const char *type = getenv("SLURM_CPU_BIND_TYPE"), *masks = getenv("SLURM_CPU_BIND_LIST");
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    if (set && type && masks && dt_starts_with(type, "mask_cpu") &&
        dt_masks_union(masks, set, size) > 0)
        sched_setaffinity(0, size, set);
    CPU_FREE(set);
}

int dt_hydra_main(int argc, char **argv)
{
    const char *local = getenv("SLURM_LOCALID");
    if (argc < 1)
        return 2;
    if (local && strcmp(local, "0") != 0)
        return 0;
    take_all_cpus();
    execvp(argv[0], argv);
    fprintf(stderr, "dt-launch: cannot start %s: %s\n", argv[0], strerror(errno));
    return 127;
}
