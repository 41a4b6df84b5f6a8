/* What Slurm gathers of a job step by itself (JobAcctGatherType), as sstat(1) prints it: the
 * library has a call for it, whose answer its public headers do not show. */
#include "monitor/monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { JOB_ID, NTASKS, IN_TOTAL, IN_MAX, OUT_TOTAL, OUT_MAX, FIELDS };

/* The amount behind `name=` in "cpu=00:01:02,mem=123K,..."; NaN where it is not told. */
static double amount_of(const char *list, const char *name)
{
    static const char units[] = "KMGTPE";
    struct dt_strv items = DT_STRV_INIT;
    size_t n = strlen(name);
    double x = NAN;
    dt_strv_split(&items, list, ",");
    for (size_t i = 0; i < items.n; i++) {
        const char *value = items.v[i] + n + 1;
        char *end;
        if (strncmp(items.v[i], name, n) != 0 || items.v[i][n] != '=')
            continue;
        x = strtod(value, &end);
        const char *unit = *end ? strchr(units, *end) : NULL;
        if (unit)
            x *= pow(1024, (double)(unit - units + 1));
        if (end == value || x < 0)
            x = NAN;
    }
    dt_strv_free(&items);
    return x;
}

/* [DAYS-]HOURS:MINUTES:SECONDS[.PART], or without the hours. */
static double cpu_of(const char *list)
{
    const char *at = strstr(list, "cpu=");
    double days = 0, part[3] = {0}, n = 0;
    if (!at || (at != list && at[-1] != ','))
        return NAN;
    for (at += 4; n < 3;) {
        char *end;
        double x = strtod(at, &end);
        if (end == at || !(x >= 0))
            return NAN;
        if (*end == '-') {
            days = x;
        } else {
            part[0] = part[1];
            part[1] = part[2];
            part[2] = x;
            n++;
        }
        if (*end != ':' && *end != '-')
            break;
        at = end + 1;
    }
    return ((days * 24 + part[0]) * 60 + part[1]) * 60 + part[2];
}

static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* By name; what the site does not gather is not there. */
static struct dt_step_amounts amounts_of(const char *in, const char *out)
{
    return (struct dt_step_amounts){
        .cpu_s = cpu_of(in),
        .mem = amount_of(in, "mem"),
        .io = sum(amount_of(in, "fs/disk"), amount_of(out, "fs/disk")),
        .net = sum(amount_of(in, "ic/ofed"), amount_of(out, "ic/ofed")),
    };
}

bool dt_step_stat_parse(const char *line, struct dt_step_stat *s)
{
    const char *field[FIELDS];
    int64_t tasks;
    size_t n = 0;
    char *text = dt_xstrdup(line);
    for (char *rest = text, *one; n < FIELDS && (one = strsep(&rest, "|"));)
        field[n++] = one;
    bool good =
        n == FIELDS && *field[JOB_ID] && dt_parse_int64(field[NTASKS], &tasks) == 0 && tasks > 0;
    if (good)
        *s = (struct dt_step_stat){.step = dt_xstrdup(field[JOB_ID]),
                                   .tasks = tasks,
                                   .all = amounts_of(field[IN_TOTAL], field[OUT_TOTAL]),
                                   .most = amounts_of(field[IN_MAX], field[OUT_MAX])};
    free(text);
    return good;
}

static double rate(double before, double now, double seconds)
{
    return now >= before && seconds > 0 ? (now - before) / seconds : NAN;
}

/* The busiest task is not idler than their mean; the one with most so far need not be it. */
static void set(double *mean, double *max, enum dt_resource i, double all, double tasks,
                double most)
{
    mean[i] = all / tasks;
    max[i] = isnan(mean[i]) ? NAN : fmax(mean[i], most);
}

void dt_step_levels(const struct dt_step_stat *before, const struct dt_step_stat *now,
                    double seconds, const struct dt_task_limits *limits, double mean[DT_RESOURCES],
                    double max[DT_RESOURCES])
{
    const struct dt_step_amounts *a = &before->all, *b = &now->all, *c = &before->most,
                                 *d = &now->most;
    double tasks = (double)now->tasks;
    set(mean, max, DT_RESOURCE_CPU, rate(a->cpu_s, b->cpu_s, seconds) / limits->cpus, tasks,
        rate(c->cpu_s, d->cpu_s, seconds) / limits->cpus);
    set(mean, max, DT_RESOURCE_MEM, b->mem / limits->mem, tasks, d->mem / limits->mem);
    set(mean, max, DT_RESOURCE_NET, rate(a->net, b->net, seconds), tasks,
        rate(c->net, d->net, seconds));
    set(mean, max, DT_RESOURCE_DISK, rate(a->io, b->io, seconds), tasks,
        rate(c->io, d->io, seconds));
    mean[DT_RESOURCE_GPU] = max[DT_RESOURCE_GPU] = NAN;
    for (int i = DT_RESOURCE_CPU; i <= DT_RESOURCE_MEM; i++) {
        mean[i] = mean[i] > 1 ? 1 : mean[i];
        max[i] = max[i] > 1 ? 1 : max[i];
    }
}
