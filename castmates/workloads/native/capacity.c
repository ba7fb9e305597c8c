/* capacity: the dial for cache capacity: keeps a working set in the cache by visiting its lines at a held rate. */
#include "kernel.h"

#include "cycles.h"

struct capacity {
    struct cycles cycles;
    unsigned writes; /* per cent of the steps, each of one visit in every cycle */
    unsigned owed;   /* per cent of a step that writes */
    uint64_t written; /* lines */
};

static void *capacity_prepare(const cm_options *options, unsigned thread)
{
    (void)thread;
    struct capacity *s = cm_state(sizeof *s);
    if (s == NULL || !cycles_prepare(&s->cycles, options))
        return NULL;
    s->writes = options->writes;
    return s;
}

/* Whether a step of so many visits writes to the lines that it leaves. */
static inline int capacity_writes(struct capacity *s, uint64_t visits)
{
    s->owed += s->writes;
    if (s->owed < 100)
        return 0;
    s->owed -= 100;
    s->written += visits;
    return 1;
}

static inline __attribute__((always_inline)) void capacity_visit(struct cycles *cycles, unsigned cycle, int writes)
{
    struct line *line = cycles->here[cycle], *next = line->next;
    CM_PIN(next); /* a separate load */
    cycles->here[cycle] = next;
    cycles->loads[cycle]++;
    if (writes)
        line->written++;
}

static void capacity_work(void *state, uint64_t units)
{
    struct capacity *s = state;
    const unsigned parallel = s->cycles.parallel;
    for (uint64_t step = 0; step < units / parallel; step++) {
        int writes = capacity_writes(s, parallel);
        for (unsigned cycle = 0; cycle < parallel; cycle++)
            capacity_visit(&s->cycles, cycle, writes);
    }
    uint64_t rest = units % parallel;
    int writes = rest > 0 && capacity_writes(s, rest);
    for (; rest > 0; rest--)
        capacity_visit(&s->cycles, cycles_take_turn(&s->cycles), writes);
}

static void capacity_restart(void *state)
{
    struct capacity *s = state;
    cycles_restart(&s->cycles);
}

static const char *capacity_verify(void *state)
{
    const struct capacity *s = state;
    uint64_t written = 0;
    for (uint64_t i = 0; i < s->cycles.count; i++)
        written += s->cycles.lines[i].written;
    return written == s->written ? cycles_verify(&s->cycles) : "the lines were not written as often as they should be";
}

static const cm_kernel capacity_kernel = {
    .name = "capacity",
    .does = "The dial for cache capacity: visits the 64-byte lines of its working set round and round, in random "
            "order, at the rate of visits that --rate gives. So it holds that much of a cache, as firmly as it visits "
            "often, and takes little bandwidth while it succeeds.",
    .unit = "one visit of a line; bytes/64 of them visit every line once",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_PARALLEL | CM_WRITES | CM_HUGE,
    .defaults = {.bytes = 16u << 20, .parallel = 8, .huge = 1},
    .bytes_per_unit = CM_LINE,
    .step = 1,
    .prepare = capacity_prepare,
    .work = capacity_work,
    .restart = capacity_restart,
    .verify = capacity_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&capacity_kernel, argc, argv); }
#endif
