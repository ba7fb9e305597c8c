/* search: binary searches in a sorted array, with a branch at each step that cannot be predicted. */
#include "kernel.h"
#include "passes.h"

#define SEARCH_MOST (1u << 22) /* of a pass: it bounds how long the verdict takes */
#define SEARCH_REPEATS 64u     /* so that no predictor can learn a short pass by heart */

struct search {
    uint64_t *keys;
    uint64_t count;
    cm_passes pass;
};

static uint64_t search_key(uint64_t rank) { return (rank << 16) + (cm_mix(rank) & 0xffff); }

static void *search_prepare(const cm_options *options, unsigned thread)
{
    struct search *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->count = cm_share(options) / sizeof *s->keys;
    s->pass.length = s->count * SEARCH_REPEATS < SEARCH_MOST ? s->count * SEARCH_REPEATS : SEARCH_MOST;
    s->keys = cm_allocate(s->count * sizeof *s->keys, options->huge);
    for (uint64_t i = 0; s->keys != NULL && i < s->count; i++)
        s->keys[i] = search_key(i);
    return s->keys == NULL ? NULL : s;
}

static uint64_t search_rank(const struct search *s, uint64_t i) { return cm_place(cm_mix(i + 1), s->count); }

/* A compiler would make conditional moves of the two ways. */
static inline uint64_t search_find(const uint64_t *keys, uint64_t count, uint64_t key)
{
    uint64_t low = 0;
    while (count > 1) {
        uint64_t half = count / 2;
        if (keys[low + half] <= key) {
            CM_WAY("upper half");
            low += half;
            count -= half;
        } else {
            CM_WAY("lower half");
            count = half;
        }
    }
    return low;
}

static __attribute__((noinline)) uint64_t search_many(const struct search *s, uint64_t from, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < from + count; i++)
        sum += search_find(s->keys, s->count, search_key(search_rank(s, i)));
    return sum;
}

static void search_work(void *state, uint64_t units)
{
    struct search *s = state;
    while (units > 0) {
        uint64_t n = cm_in_pass(&s->pass, units);
        s->pass.sum += search_many(s, s->pass.at, n);
        cm_advance(&s->pass, n);
        units -= n;
    }
}

static void search_restart(void *state) { (void)state; }

static uint64_t search_found(const void *state, uint64_t i) { return search_rank(state, i); }

static const char *search_verify(void *state)
{
    const struct search *s = state;
    if (!cm_sum_is_right(&s->pass, search_found, s))
        return "the sum of the places found is not that of their keys";
    for (uint64_t i = 0; i < s->count; i++)
        if (s->keys[i] != search_key(i))
            return "a key of the array has changed";
    return NULL;
}

static const cm_kernel search_kernel = {
    .name = "search",
    .does = "Binary searches in a sorted array that fits into L1: branches that cannot be predicted.",
    .unit = "one search",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 16u << 10, .threads = 1},
    .step = 1,
    .prepare = search_prepare,
    .work = search_work,
    .restart = search_restart,
    .verify = search_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&search_kernel, argc, argv); }
#endif
