/* chase: dependent loads round random cycles of cache lines: an antagonist (or lead) that wants cache capacity. */
#include "kernel.h"

#include "cycles.h"

static void *chase_prepare(const cm_options *options, unsigned thread)
{
    (void)thread;
    struct cycles *s = cm_state(sizeof *s);
    return s != NULL && cycles_prepare(s, options) ? s : NULL;
}

/* A separate load: those of several cycles cannot become one that gathers. */
static inline struct line *chase_next(const struct line *line)
{
    struct line *next = line->next;
    CM_PIN(next);
    return next;
}

#define CHASE_IN_REGISTERS 8
#define CHASE_1 a = chase_next(a);
#define CHASE_2 CHASE_1 b = chase_next(b);
#define CHASE_3 CHASE_2 c = chase_next(c);
#define CHASE_4 CHASE_3 d = chase_next(d);
#define CHASE_5 CHASE_4 e = chase_next(e);
#define CHASE_6 CHASE_5 f = chase_next(f);
#define CHASE_7 CHASE_6 g = chase_next(g);
#define CHASE_8 CHASE_7 h = chase_next(h);
#define CHASE_CASE(parallel)               \
    case parallel:                         \
        for (; steps > 0; steps--) {       \
            CHASE_##parallel               \
        }                                  \
        break;

/* Go as many steps along the first cycles, up to eight. They have names: an array might be kept in memory. */
static __attribute__((noinline)) void chase_walk(struct line **here, uint64_t steps, unsigned parallel)
{
    struct line *a = here[0], *b = here[1], *c = here[2], *d = here[3];
    struct line *e = here[4], *f = here[5], *g = here[6], *h = here[7];
    switch (parallel) {
        CHASE_CASE(1)
        CHASE_CASE(2)
        CHASE_CASE(3)
        CHASE_CASE(4)
        CHASE_CASE(5)
        CHASE_CASE(6)
        CHASE_CASE(7)
        CHASE_CASE(8)
    }
    here[0] = a, here[1] = b, here[2] = c, here[3] = d;
    here[4] = e, here[5] = f, here[6] = g, here[7] = h;
}

static void chase_walk_all(struct cycles *s, uint64_t steps, unsigned parallel)
{
    for (unsigned i = 0; i < parallel; i++)
        s->loads[i] += steps;
    if (parallel <= CHASE_IN_REGISTERS)
        chase_walk(s->here, steps, parallel);
    else
        for (; steps > 0; steps--)
            for (unsigned i = 0; i < parallel; i++)
                s->here[i] = chase_next(s->here[i]);
}

static void chase_work(void *state, uint64_t units)
{
    struct cycles *s = state;
    chase_walk_all(s, units / s->parallel, s->parallel);
    for (uint64_t rest = units % s->parallel; rest > 0; rest--) {
        unsigned cycle = cycles_take_turn(s);
        s->here[cycle] = chase_next(s->here[cycle]);
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
    .defaults = {.bytes = 64u << 20, .huge = 1}, /* so that address translation has no part in it */
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
