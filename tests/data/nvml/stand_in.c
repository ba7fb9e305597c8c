/* Stands in for libnvidia-ml.so.1 in tests, because no machine with a GPU is at hand: two GPUs, from NVIDIA's documentation
 * of NVML. The first draws 150 W at 1.5 GHz, held down by its power cap; the second counts no energy and has no sensor of
 * heat. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, SM = 1 };
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilisation;

static int is_first(const void *device) { return (uintptr_t)device == 1; }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int result) { return result == NOT_SUPPORTED ? "Not Supported" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.82.07"); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(uintptr_t)(index + 1); return SUCCESS; }
int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    snprintf(text, size, is_first(device) ? "Stand-in A" : "Stand-in B");
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, Utilisation *rates)
{
    rates->gpu = is_first(device) ? 75 : 0;
    rates->memory = 20;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory)
{
    (void)device;
    *memory = (Memory){16ULL << 30, 12ULL << 30, 4ULL << 30};
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = is_first(device) ? 149500 : 30000;
    return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    struct timespec now;
    if (!is_first(device))
        return NOT_SUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules = 150ULL * (now.tv_sec * 1000ULL + now.tv_nsec / 1000000);
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(void *device, unsigned kind, unsigned *mhz)
{
    (void)device;
    *mhz = kind == SM ? 1500 : 5001;
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius)
{
    (void)sensor;
    *celsius = 61;
    return is_first(device) ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = is_first(device) ? 0x04 : 0x01;
    return SUCCESS;
}
