/* capacity: the dial for cache capacity: keeps a working set in the cache by visiting its lines at a held rate. */
#include "kernel.h"

#include "cycles.h"

struct capacity {
    struct cycles cycles;
    unsigned writes; /* per cent of the steps, each of one capacity_visit in every cycle */
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

/* Go a step along the first `parallel` cycles, and write to the lines that are left if that is owed. */
static void capacity_visit(struct capacity *s, unsigned parallel)
{
    struct cycles *cycles = &s->cycles;
    s->owed += s->writes;
    int writes = s->owed >= 100;
    for (unsigned i = 0; i < parallel; i++) {
        struct line *line = cycles->here[i];
        cycles->here[i] = line->next;
        cycles->loads[i]++;
        if (writes)
            line->written++;
    }
    if (writes) {
        s->owed -= 100;
        s->written += parallel;
    }
}

static void capacity_work(void *state, uint64_t units)
{
    struct capacity *s = state;
    for (uint64_t i = 0; i < units / s->cycles.parallel; i++)
        capacity_visit(s, s->cycles.parallel);
    if (units % s->cycles.parallel > 0)
        capacity_visit(s, (unsigned)(units % s->cycles.parallel));
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
    .defaults = {.bytes = 16u << 20, .parallel = 8},
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
