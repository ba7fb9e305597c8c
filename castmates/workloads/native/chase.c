/* chase: dependent loads round random cycles of cache lines: an antagonist (or lead) that wants cache capacity. */
#include "kernel.h"

#include "cycles.h"

static void *chase_prepare(const cm_options *options, unsigned thread)
{
    (void)thread;
    struct cycles *s = cm_state(sizeof *s);
    return s != NULL && cycles_prepare(s, options) ? s : NULL;
}

/* Go as many steps along the first `parallel` cycles; a constant number of them stays in registers. */
static inline __attribute__((always_inline)) void chase_walk(struct cycles *s, uint64_t steps, unsigned parallel)
{
    struct line *here[CM_MOST_PARALLEL];
    memcpy(here, s->here, parallel * sizeof *here);
    while (steps-- > 0) {
#pragma GCC unroll 8
        for (unsigned i = 0; i < parallel; i++)
            here[i] = here[i]->next;
    }
    memcpy(s->here, here, parallel * sizeof *here);
}

static void chase_walk_all(struct cycles *s, uint64_t steps, unsigned parallel)
{
    switch (parallel) {
    case 1: chase_walk(s, steps, 1); break;
    case 2: chase_walk(s, steps, 2); break;
    case 3: chase_walk(s, steps, 3); break;
    case 4: chase_walk(s, steps, 4); break;
    case 5: chase_walk(s, steps, 5); break;
    case 6: chase_walk(s, steps, 6); break;
    case 7: chase_walk(s, steps, 7); break;
    case 8: chase_walk(s, steps, 8); break;
    default: chase_walk(s, steps, parallel);
    }
    for (unsigned i = 0; i < parallel; i++)
        s->loads[i] += steps;
}

static void chase_work(void *state, uint64_t units)
{
    struct cycles *s = state;
    chase_walk_all(s, units / s->parallel, s->parallel);
    for (uint64_t rest = units % s->parallel; rest > 0; rest--) {
        unsigned cycle = cycles_take_turn(s);
        s->here[cycle] = s->here[cycle]->next;
        s->loads[cycle]++;
    }
}

static void chase_restart(void *state) { cycles_restart(state); }

static const char *chase_verify(void *state) { return cycles_verify(state); }

static const cm_kernel chase_kernel = {
    .name = "chase",
    .does = "Loads that wait for one another, round random cycles of 64-byte lines, which takes cache capacity and is "
            "hurt by every longer latency. There are as many cycles, walked at a time, as --parallel says; they share "
            "the lines out.",
    .unit = "one load; bytes/64 of them visit every line once",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_PARALLEL | CM_HUGE,
    .defaults = {.bytes = 64u << 20},
    .bytes_per_unit = CM_LINE,
    .step = 1,
    .prepare = chase_prepare,
    .work = chase_work,
    .restart = chase_restart,
    .verify = chase_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&chase_kernel, argc, argv); }
#endif
