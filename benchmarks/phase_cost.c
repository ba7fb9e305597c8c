/* Times an empty loop and a phase that is recorded, in turns of random order from a seed; prints the ns a call by round,
 * as JSON. */
#include "castmates_phases.h"

enum { ROUNDS = 12, CALLS = 100000, WAYS = 2 };

static const char *const names[WAYS] = {"empty loop", "a phase"};

static double time_calls(int annotated)
{
    uint64_t begin = cmph_now();
    for (int i = 0; i < CALLS; i++) {
        __asm__ volatile("" : "+r"(annotated));
        if (annotated) {
            castmates_phase_begin("forward", 1);
            castmates_phase_end();
        }
    }
    return (double)(cmph_now() - begin) / CALLS;
}

int main(int argc, char **argv)
{
    castmates_phase_begin("forward", 1);
    castmates_phase_end();
    if (cmph.listener != CMPH_LISTENS || argc != 2)
        return 2;
    srand((unsigned)atoi(argv[1]));
    for (int round = 0; round < ROUNDS; round++) {
        double ns[WAYS];
        int first = rand() % WAYS;
        for (int turn = 0; turn < WAYS; turn++)
            ns[(first + turn) % WAYS] = time_calls((first + turn) % WAYS);
        printf("%s{\"%s\": %f, \"%s\": %f}", round ? ", " : "[", names[0], ns[0], names[1], ns[1]);
    }
    printf("]\n");
    return 0;
}
