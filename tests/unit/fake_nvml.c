/* A library like NVML. GPU 0 and "GPU-zero" have samples, GPU 1 only its present rate, GPU 2 (a
 * part of one) tells nothing, and there are no others. */
#include <string.h>

struct sample {
    unsigned long long t;
    union {
        unsigned int percent;
        unsigned long long room;
    } value;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetSamples(void *device, int type, unsigned long long since, int *value_type,
                         unsigned int *count, struct sample *samples);
int nvmlDeviceGetUtilizationRates(void *device, unsigned int rates[2]);

enum { OK, NOT_FOUND = 6, NOT_SUPPORTED = 3 };
static char gpus[3];
static int started;

int nvmlInit_v2(void)
{
    started++;
    return OK;
}

int nvmlShutdown(void)
{
    return started-- ? OK : NOT_FOUND;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    if (index >= sizeof(gpus))
        return NOT_FOUND;
    *device = &gpus[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    return strcmp(uuid, "GPU-zero") == 0 ? nvmlDeviceGetHandleByIndex_v2(0, device) : NOT_FOUND;
}

/* Ten more at each look, which rise: 0 1 ... 9, 10 ... 19 per cent; room for 64, the rest with old
 * times. */
int nvmlDeviceGetSamples(void *device, int type, unsigned long long since, int *value_type,
                         unsigned int *count, struct sample *samples)
{
    if (device != &gpus[0] || type != 1)
        return NOT_SUPPORTED;
    *value_type = 1;
    *count = 64;
    for (unsigned int i = 0; samples && i < 64; i++)
        samples[i] = (struct sample){i < 10 ? since + i + 1 : 0, {(unsigned int)since + i}};
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned int rates[2])
{
    if (device == &gpus[2])
        return NOT_SUPPORTED;
    rates[0] = 40;
    rates[1] = 10;
    return OK;
}
