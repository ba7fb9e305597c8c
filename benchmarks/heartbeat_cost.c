/* Times an empty loop, a beat without a runner and one with it, in turns of random order from a seed; prints the ns
 * a call by round, as JSON. */
#include "heartbeat.h"

#include <stdlib.h>

enum { ROUNDS = 12, CALLS = 200000, WAYS = 3 };

static const char *const names[WAYS] = {"empty loop", "no runner", "beat"};

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

static void shuffle(int *order)
{
    for (int last = WAYS - 1; last > 0; last--) {
        int other = rand() % (last + 1), kept = order[last];
        order[last] = order[other];
        order[other] = kept;
    }
}

int main(int argc, char **argv)
{
    cm_heartbeat *hb = cm_heartbeat_open();
    if (hb == NULL || argc != 2)
        return 2;
    srand((unsigned)atoi(argv[1]));
    int order[WAYS] = {0, 1, 2};
    for (int round = 0; round < ROUNDS; round++) {
        double ns[WAYS];
        shuffle(order);
        for (int turn = 0; turn < WAYS; turn++)
            ns[order[turn]] = time_calls(order[turn] == 2 ? hb : NULL, order[turn] > 0);
        printf("%s", round ? ", {" : "[{");
        for (int way = 0; way < WAYS; way++)
            printf("%s\"%s\": %f", way ? ", " : "", names[way], ns[way]);
        printf("}");
    }
    printf("]\n");
    return 0;
}
