/* NVML as far as it is needed, declared here: its header is on few machines, the library comes with
 * the driver. */
#include "monitor/monitor.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 64
#define UTILIZATION_SAMPLES                                                                        \
    1 /* NVML_GPU_UTILIZATION_SAMPLES: per cent of the time, about 6 a second */

typedef void *device;
struct sample {
    unsigned long long t; /* microseconds */
    union {
        unsigned int percent;
        unsigned long long room;
    } value;
};
struct rates {
    unsigned int gpu, memory; /* per cent of the last moment, at most a second */
};

struct dt_gpus {
    void *library;
    int (*shutdown)(void);
    int (*by_index)(unsigned int index, device *d);
    int (*by_uuid)(const char *uuid, device *d);
    int (*samples)(device d, int type, unsigned long long since, int *value_type,
                   unsigned int *count, struct sample *samples);
    int (*rates)(device d, struct rates *r);
    device devices[GPUS_MAX];
    unsigned long long since[GPUS_MAX];
    size_t n;
};

/* POSIX has dlsym() give functions as objects. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static void add_device(struct dt_gpus *g, const char *word)
{
    int64_t index;
    device d;
    bool number = dt_parse_int64(word, &index) == 0 && index >= 0 && index < 1024;
    if (g->n < GPUS_MAX &&
        (number ? g->by_index((unsigned int)index, &d) : g->by_uuid(word, &d)) == 0)
        g->devices[g->n++] = d;
}

struct dt_gpus *dt_gpus_open(const char *library, const char *visible)
{
    int (*init)(void);
    struct dt_strv words = DT_STRV_INIT;
    struct dt_gpus *g = dt_xcalloc(1, sizeof(*g));
    if (visible)
        dt_strv_split(&words, visible, ", ");
    g->library = words.n ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
    bool whole = g->library && find(g->library, "nvmlInit_v2", &init) &&
                 find(g->library, "nvmlShutdown", &g->shutdown) &&
                 find(g->library, "nvmlDeviceGetHandleByIndex_v2", &g->by_index) &&
                 find(g->library, "nvmlDeviceGetHandleByUUID", &g->by_uuid) &&
                 find(g->library, "nvmlDeviceGetSamples", &g->samples) &&
                 find(g->library, "nvmlDeviceGetUtilizationRates", &g->rates);
    if (whole && init() == 0)
        for (size_t i = 0; i < words.n; i++)
            add_device(g, words.v[i]);
    else
        g->shutdown = NULL;
    dt_strv_free(&words);
    if (g->n)
        return g;
    dt_gpus_close(g);
    return NULL;
}

/* The mean of what NVML has sampled since the last call; NaN where it has nothing. */
static double sampled(struct dt_gpus *g, size_t i)
{
    int type;
    unsigned int count = 0, used = 0;
    double sum = 0;
    if (g->samples(g->devices[i], UTILIZATION_SAMPLES, g->since[i], &type, &count, NULL) != 0 ||
        count == 0 || count > 100000)
        return NAN;
    struct sample *v = dt_xcalloc(count, sizeof(*v));
    if (g->samples(g->devices[i], UTILIZATION_SAMPLES, g->since[i], &type, &count, v) != 0)
        count = 0;
    unsigned long long last = g->since[i];
    for (unsigned int k = 0; k < count; k++) {
        if (v[k].t <= g->since[i] || v[k].value.percent > 100)
            continue; /* its buffer is not always full */
        sum += v[k].value.percent;
        used++;
        last = v[k].t > last ? v[k].t : last;
    }
    g->since[i] = last;
    free(v);
    return used ? sum / used / 100 : NAN;
}

static double busy(struct dt_gpus *g, size_t i)
{
    struct rates r;
    double x = sampled(g, i);
    if (isnan(x) && g->rates(g->devices[i], &r) == 0 && r.gpu <= 100)
        x = r.gpu / 100.0;
    return x;
}

double dt_gpus_busy(struct dt_gpus *g)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < g->n; i++) {
        double x = busy(g, i);
        if (isnan(x))
            continue; /* such as a part of a GPU, of which NVML does not tell */
        sum += x;
        known++;
    }
    return known ? sum / (double)known : NAN;
}

void dt_gpus_close(struct dt_gpus *g)
{
    if (!g)
        return;
    if (g->shutdown)
        g->shutdown();
    if (g->library)
        dlclose(g->library);
    free(g);
}
