/* compute: integer and floating-point chains in registers and a table of 512 bytes: busy, but it never leaves L1. */
#include "kernel.h"

#define COMPUTE_BITS 6

struct compute {
    uint64_t table[1 << COMPUTE_BITS];
    uint64_t checksum; /* the sum of what all chunks gave */
    uint64_t chunk;    /* units of the first chunk: all but the last are as long */
    uint64_t chunks;
    uint64_t last; /* units of a shorter last chunk */
};

/* The pins keep every value by itself in a register, so that nothing is done in vectors or beforehand. */
static __attribute__((noinline)) uint64_t compute_chains(const uint64_t *table, uint64_t iterations)
{
    uint64_t x = 88172645463325252u, y = 0;
    double f = 1.0;
    for (uint64_t i = 0; i < iterations; i++) {
        CM_PIN(x);
        CM_PIN(y);
        CM_PIN_REAL(f);
        x = x * 6364136223846793005u + 1442695040888963407u;
        y ^= table[x >> (64 - COMPUTE_BITS)] + (y >> 7);
        f = f * 0.75 + (double)(x >> 44);
    }
    return x ^ y ^ (uint64_t)f;
}

static void *compute_prepare(const cm_options *options, unsigned thread)
{
    struct compute *s = cm_state(sizeof *s);
    (void)options;
    (void)thread;
    for (uint64_t i = 0; s != NULL && i < 1u << COMPUTE_BITS; i++)
        s->table[i] = (i + 1) * 11400714819323198485u;
    return s;
}

static void compute_work(void *state, uint64_t units)
{
    struct compute *s = state;
    s->checksum += compute_chains(s->table, units);
    if (s->chunks == 0)
        s->chunk = units;
    if (units == s->chunk)
        s->chunks++;
    else
        s->last = units;
}

static void compute_restart(void *state)
{
    struct compute *s = state;
    s->checksum = s->chunk = s->chunks = s->last = 0;
}

/* Every chunk starts from the same seed, so two fresh calculations show what the sum must be. */
static const char *compute_verify(void *state)
{
    const struct compute *s = state;
    uint64_t expected = s->chunks * compute_chains(s->table, s->chunk);
    if (s->last != 0)
        expected += compute_chains(s->table, s->last);
    return s->checksum == expected ? NULL : "the checksum differs from that of a fresh calculation";
}

static const cm_kernel compute_kernel = {
    .name = "compute",
    .does = "Integer and floating-point arithmetic in registers with a 512-byte table: busy, but it never leaves L1.",
    .unit = "one iteration",
    .takes = CM_RATE | CM_THREADS,
    .step = 1,
    .prepare = compute_prepare,
    .work = compute_work,
    .restart = compute_restart,
    .verify = compute_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&compute_kernel, argc, argv); }
#endif
