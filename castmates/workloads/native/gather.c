/* gather: independent accesses all over a table, read only or read and written back (GUPS): many misses at a time. */
#include "kernel.h"
#include "passes.h"

#define GATHER_MOST (1u << 25) /* of a pass: it bounds how long the verdict takes */

struct gather {
    uint64_t *table;
    uint64_t words;
    int update;
    cm_passes pass;
};

static uint64_t gather_word(uint64_t place) { return place * 0x9e3779b97f4a7c15u; }

static uint64_t gather_place(const struct gather *s, uint64_t i) { return cm_place(cm_mix(i + 1), s->words); }

static void *gather_prepare(const cm_options *options, unsigned thread)
{
    struct gather *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->words = cm_share(options) / sizeof *s->table;
    s->update = strcmp(options->mode, "update") == 0;
    s->pass.length = s->words < GATHER_MOST ? s->words : GATHER_MOST;
    s->table = cm_allocate(s->words * sizeof *s->table, options->huge);
    for (uint64_t i = 0; s->table != NULL && i < s->words; i++)
        s->table[i] = gather_word(i);
    return s->table == NULL ? NULL : s;
}

/* A separate place: several of them cannot become one access that gathers or scatters. */
static inline uint64_t *gather_at(const struct gather *s, uint64_t i)
{
    uint64_t *at = &s->table[gather_place(s, i)];
    CM_PIN(at);
    return at;
}

static __attribute__((noinline)) uint64_t gather_read(const struct gather *s, uint64_t from, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < from + count; i++)
        sum += *gather_at(s, i);
    return sum;
}

static __attribute__((noinline)) void gather_update(const struct gather *s, uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count; i++)
        *gather_at(s, i) ^= cm_mix(i + 1);
}

static void gather_work(void *state, uint64_t units)
{
    struct gather *s = state;
    while (units > 0) {
        uint64_t n = cm_in_pass(&s->pass, units);
        if (s->update)
            gather_update(s, s->pass.at, n);
        else
            s->pass.sum += gather_read(s, s->pass.at, n);
        cm_advance(&s->pass, n);
        units -= n;
    }
}

static void gather_restart(void *state) { (void)state; }

static uint64_t gather_found(const void *state, uint64_t i) { return gather_word(gather_place(state, i)); }

/* An even number of passes leaves the table as it was, whatever they did: so the work goes on to the end of an odd one,
   which is undone by the rule, not by the function that has made it. */
static void gather_undo(struct gather *s)
{
    do
        gather_work(s, s->pass.length - s->pass.at);
    while (s->pass.passes % 2 == 0);
    for (uint64_t i = 0; i < s->pass.length; i++) {
        uint64_t random = cm_mix(i + 1);
        s->table[cm_place(random, s->words)] ^= random;
    }
    s->pass.passes = 0;
}

static const char *gather_verify(void *state)
{
    struct gather *s = state;
    if (s->update)
        gather_undo(s);
    else if (!cm_sum_is_right(&s->pass, gather_found, s))
        return "the sum of what was read is not that of its passes";
    for (uint64_t i = 0; i < s->words; i++)
        if (s->table[i] != gather_word(i))
            return s->update ? "an update is missing, was made twice or went to a wrong place"
                             : "a word of the table has changed";
    return NULL;
}

static const char *const gather_modes[] = {"random", "update", NULL};

static const cm_kernel gather_kernel = {
    .name = "gather",
    .does = "Independent reads all over a table, or updates (exclusive-or, as in GUPS): memory with many misses at a "
            "time.",
    .unit = "one access to 8 bytes",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE | CM_MODE,
    .defaults = {.bytes = 64u << 20, .threads = 1},
    .modes = gather_modes,
    .step = 1,
    .prepare = gather_prepare,
    .work = gather_work,
    .restart = gather_restart,
    .verify = gather_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&gather_kernel, argc, argv); }
#endif
