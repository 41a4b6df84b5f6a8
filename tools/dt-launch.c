/* dt-launch: starts the roles of a trial; as `srun` in a trial's PATH it does the same for
 * unchanged scripts. */
#include "launch/launch.h"

#include <string.h>

static const char usage[] =
    "Usage: dt-launch [SRUN OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Inside the batch script of a trial of dt-tune: starts PROGRAM once for every parameter server "
    "and\n"
    "worker of the trial, each with its rank, peers and ports in its environment, and waits for "
    "the\n"
    "workers; the servers are then ended. In a trial plain `srun PROGRAM` does the same.\n"
    "Outside of a trial: a heterogeneous job of two components is servers and workers, any other "
    "job\n"
    "all workers.\n"
    "\n"
    "SRUN OPTIONS go to every role's srun, but for those that the trial's configuration decides "
    "(CPUs,\n"
    "GPUs, memory, layout), which are left out. A task or node count other than the job's, "
    "--het-group,\n"
    "--nodelist or --pty hands the whole command to srun unchanged.\n"
    "\n"
    "  --help       print this and exit\n"
    "  --version    print the version and exit\n"
    "\n"
    "Exit status: 0 when all workers ended with 0; else that of the task that failed first (128 + "
    "N after\n"
    "signal N); 2 for wrong use or where nothing could be started.\n"
    "Environment of a task: see dt-launch(1).\n";

struct mode {
    const char *name;
    int (*main)(int argc, char **argv);
};

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"--carrier", dt_batch_main},
        {"--task", dt_task_main},
        {"--hydra", dt_hydra_main},
        {"--probe", dt_ports_probe_main},
        {"--tuner-gone", dt_tuner_gone_main},
        {"--tell-tuner", dt_tell_tuner_main},
    };
    const char *slash = strrchr(argv[0], '/');
    bool as_srun = strcmp(slash ? slash + 1 : argv[0], "srun") == 0;
    if (as_srun)
        return dt_shim_main(argc, argv, true);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return fputs(usage, stdout) < 0;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
        return puts("dt-launch " DT_VERSION) < 0;
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].main(argc - 2, argv + 2);
    return dt_shim_main(argc, argv, false);
}
