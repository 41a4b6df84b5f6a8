#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"check", cmd_check, "whether a SPEC is valid, and what it would search"},
    {"expand", cmd_expand, "the batch script of one configuration"},
    {"history", cmd_history, "what earlier studies have found"},
    {"metric", cmd_metric, "report metrics from inside a trial: dt-tune metric loss=0.3 step=100"},
    {"report", cmd_report, "the report of a study: text, JSON or CSV"},
    {"serve", cmd_serve, "run the trials that another program asks for, on this host"},
    {"simulate", cmd_simulate, "the whole tuner on a measured table"},
    {"suggest", cmd_suggest, "the next configurations, given observations"},
    {"topo", cmd_topo, "what the cluster is made of, and what limits bind you"},
    {"prepare", cmd_prepare, "(started by sbatch) check a submission"},
    {"run", cmd_run, "(started by the tuning job) run a study"},
};
#define NCOMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *f)
{
    fprintf(f, "usage: dt-tune COMMAND [ARGUMENTS]; dt-tune COMMAND --help says more\n\n");
    for (size_t i = 0; i < NCOMMANDS; i++)
        fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(f, "\nTo tune a job: sbatch --dt-tune SCRIPT, or dt-sbatch --dt-tune SCRIPT\n");
}

int main(int argc, char **argv)
{
    const char *names[NCOMMANDS];
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("dt-tune %s\n", DT_VERSION);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < NCOMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], names[i]) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    const char *near = dt_nearest(argv[1], names, NCOMMANDS);
    fprintf(stderr, "dt-tune: unknown command \"%s\"%s%s%s; see dt-tune --help\n", argv[1],
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return EXIT_USAGE;
}
