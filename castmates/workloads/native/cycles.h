/* Cache lines in random cycles, each of which is walked by loads that wait for one another: chase and capacity. */
#ifndef CASTMATES_CYCLES_H
#define CASTMATES_CYCLES_H

#include "memory.h"
#include "options.h"

struct line {
    struct line *next;
    uint64_t written; /* how often */
    uint64_t padding[6];
};

/* As many cycles as there are loads under way at a time; they share the lines out. */
struct cycles {
    struct line *lines;
    uint64_t count;
    unsigned parallel;
    unsigned turn; /* the cycle that gets the next load where there are fewer than cycles */
    struct line *here[CM_MOST_PARALLEL];
    uint64_t loads[CM_MOST_PARALLEL];
};

/* The first line of a cycle; of the one after the last: the end of the lines. */
static inline uint64_t cycle_begin(const struct cycles *s, unsigned cycle) { return s->count / s->parallel * cycle; }

static inline uint64_t cycle_end(const struct cycles *s, unsigned cycle)
{
    return cycle + 1 == s->parallel ? s->count : cycle_begin(s, cycle + 1);
}

static inline void cycles_restart(struct cycles *s)
{
    s->turn = 0;
    for (unsigned i = 0; i < s->parallel; i++) {
        s->here[i] = s->lines + cycle_begin(s, i);
        s->loads[i] = 0;
    }
}

/* The cycle whose turn it is: so all get as many loads, however few there are in a chunk. */
static inline unsigned cycles_take_turn(struct cycles *s)
{
    unsigned cycle = s->turn;
    s->turn = cycle + 1 == s->parallel ? 0 : cycle + 1;
    return cycle;
}

/* Make the cycles in private memory; 0 with errno where there is none. */
static inline int cycles_prepare(struct cycles *s, const cm_options *options)
{
    uint64_t bytes = cm_share(options), seed = 20240607;
    s->count = bytes / sizeof(struct line);
    s->parallel = options->parallel < s->count ? options->parallel : (unsigned)s->count;
    s->lines = cm_allocate(bytes, options->huge);
    if (s->lines == NULL)
        return 0;
    for (uint64_t i = 0; i < s->count; i++)
        s->lines[i].next = &s->lines[i];
    /* Sattolo's shuffle leaves a single cycle through all the lines it is given. */
    for (unsigned cycle = 0; cycle < s->parallel; cycle++) {
        uint64_t begin = cycle_begin(s, cycle);
        for (uint64_t i = cycle_end(s, cycle) - 1; i > begin; i--) {
            uint64_t j = begin + cm_random(&seed) % (i - begin);
            struct line *swapped = s->lines[i].next;
            s->lines[i].next = s->lines[j].next;
            s->lines[j].next = swapped;
        }
    }
    cycles_restart(s);
    return 1;
}

/* Walk a cycle once more, checking every link before it is followed. */
static inline const char *cycle_verify(const struct cycles *s, unsigned cycle)
{
    const struct line *first = s->lines + cycle_begin(s, cycle), *line = first;
    const uint64_t count = cycle_end(s, cycle) - cycle_begin(s, cycle);
    for (uint64_t i = 0; i < count; i++) {
        if (i == s->loads[cycle] % count && line != s->here[cycle])
            return "it does not stand where its number of loads leads";
        if (i > 0 && line == first)
            return "the cycle is closed before all lines were seen";
        uintptr_t offset = (uintptr_t)line->next - (uintptr_t)first;
        if (offset % sizeof(struct line) != 0 || offset / sizeof(struct line) >= count)
            return "a link leads out of the cycle";
        line = line->next;
    }
    return line == first ? NULL : "the cycle does not lead back to its start";
}

static inline const char *cycles_verify(const struct cycles *s)
{
    const char *wrong = NULL;
    for (unsigned cycle = 0; cycle < s->parallel && wrong == NULL; cycle++)
        wrong = cycle_verify(s, cycle);
    return wrong;
}

#endif
