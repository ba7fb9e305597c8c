/* Times an empty loop, a beat without a runner and one with it, in turns; prints the three ns per call by round. */
#include "heartbeat.h"

enum { ROUNDS = 30, CALLS = 200000 };

static double time_calls(cm_heartbeat *hb, int beating)
{
    uint64_t begin = cm_now();
    for (int i = 0; i < CALLS; i++) {
        __asm__ volatile("" : "+r"(hb), "+r"(beating));
        if (beating)
            cm_beat(hb, 1);
    }
    return (double)(cm_now() - begin) / CALLS;
}

int main(void)
{
    cm_heartbeat *hb = cm_heartbeat_open();
    if (hb == NULL)
        return 2;
    for (int round = 0; round < ROUNDS; round++) {
        double empty = time_calls(NULL, 0), unheard = time_calls(NULL, 1), heard = time_calls(hb, 1);
        printf("%f %f %f\n", empty, unheard, heard);
    }
    return 0;
}
