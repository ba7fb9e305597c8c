/* hashjoin: the probe side of a hash join: keys looked up in a half-full table, every other one without a match. */
#include "kernel.h"
#include "passes.h"

#define HASHJOIN_MOST (1u << 24) /* of a pass: it bounds how long the verdict takes */

struct slot {
    uint64_t key; /* 0: empty */
    uint64_t load;
};

struct hashjoin {
    struct slot *slots;
    uint64_t count; /* of slots; half of them hold a key */
    cm_passes pass;
};

static uint64_t hashjoin_key(uint64_t number) { return cm_mix(number + 1); }
static uint64_t hashjoin_load(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> 7; }

/* The slot that has the key, or the empty one where it would be. */
static inline uint64_t hashjoin_slot(const struct hashjoin *s, uint64_t key)
{
    uint64_t at = cm_place(key * 0xff51afd7ed558ccdu, s->count);
    while (s->slots[at].key != key && s->slots[at].key != 0)
        at = at + 1 == s->count ? 0 : at + 1;
    return at;
}

/* The key of a probe: of one row of the table, or one that no row has. */
static inline uint64_t hashjoin_probe(const struct hashjoin *s, uint64_t i)
{
    uint64_t random = cm_mix(~i), rows = s->count / 2;
    return hashjoin_key(random & 1 ? cm_place(random, rows) : rows + i);
}

static void *hashjoin_prepare(const cm_options *options, unsigned thread)
{
    struct hashjoin *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->count = cm_share(options) / sizeof(struct slot);
    s->pass.length = s->count < HASHJOIN_MOST ? s->count : HASHJOIN_MOST;
    s->slots = cm_allocate(s->count * sizeof(struct slot), options->huge);
    if (s->slots == NULL)
        return NULL;
    memset(s->slots, 0, s->count * sizeof(struct slot));
    for (uint64_t row = 0; row < s->count / 2; row++) {
        uint64_t key = hashjoin_key(row);
        s->slots[hashjoin_slot(s, key)] = (struct slot){key, hashjoin_load(key)};
    }
    return s;
}

static __attribute__((noinline)) uint64_t hashjoin_join(const struct hashjoin *s, uint64_t from, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < from + count; i++) {
        uint64_t key = hashjoin_probe(s, i), at = hashjoin_slot(s, key);
        if (s->slots[at].key == key) {
            CM_WAY("a match"); /* or its load might be read without one, by a conditional move */
            sum += s->slots[at].load;
        }
    }
    return sum;
}

static void hashjoin_work(void *state, uint64_t units)
{
    struct hashjoin *s = state;
    while (units > 0) {
        uint64_t n = cm_in_pass(&s->pass, units);
        s->pass.sum += hashjoin_join(s, s->pass.at, n);
        cm_advance(&s->pass, n);
        units -= n;
    }
}

static void hashjoin_restart(void *state) { (void)state; }

static uint64_t hashjoin_found(const void *state, uint64_t i)
{
    return cm_mix(~i) & 1 ? hashjoin_load(hashjoin_probe(state, i)) : 0;
}

static const char *hashjoin_verify(void *state)
{
    const struct hashjoin *s = state;
    uint64_t keys = 0;
    if (!cm_sum_is_right(&s->pass, hashjoin_found, s))
        return "the sum of the matches is not that of its probes";
    for (uint64_t i = 0; i < s->count; i++) {
        keys += s->slots[i].key != 0;
        if (s->slots[i].key != 0 && s->slots[i].load != hashjoin_load(s->slots[i].key))
            return "a row of the table has changed";
    }
    return keys == s->count / 2 ? NULL : "the table has not the rows that were put into it";
}

static const cm_kernel hashjoin_kernel = {
    .name = "hashjoin",
    .does = "Probes of a half-full hash table, every other one without a match: random reads and branches that depend "
            "on them.",
    .unit = "one probe",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 64u << 20, .threads = 1},
    .step = 1,
    .prepare = hashjoin_prepare,
    .work = hashjoin_work,
    .restart = hashjoin_restart,
    .verify = hashjoin_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&hashjoin_kernel, argc, argv); }
#endif
