/* compute: integer and floating-point chains in registers and a table of 512 bytes: busy, but it never leaves L1. */
#include "kernel.h"

#define TABLE_BITS 6

struct compute {
    uint64_t table[1 << TABLE_BITS];
    uint64_t checksum; /* the sum of what all chunks gave */
    uint64_t chunk;    /* units of the first chunk: all but the last are as long */
    uint64_t chunks;
    uint64_t last; /* units of a shorter last chunk */
};

/* The empty assembler statements pin the values to scalar registers, so that nothing is vectorised or precomputed. */
static __attribute__((noinline)) uint64_t calculate(const uint64_t *table, uint64_t iterations)
{
    uint64_t x = 88172645463325252u, y = 0;
    double f = 1.0;
    for (uint64_t i = 0; i < iterations; i++) {
        __asm__ volatile("" : "+r"(x), "+r"(y));
        x = x * 6364136223846793005u + 1442695040888963407u;
        y ^= table[x >> (64 - TABLE_BITS)] + (y >> 7);
        f = f * 0.75 + (double)(x >> 44);
    }
    return x ^ y ^ (uint64_t)f;
}

static void *prepare(uint64_t bytes)
{
    static struct compute s;
    (void)bytes;
    for (uint64_t i = 0; i < 1u << TABLE_BITS; i++)
        s.table[i] = (i + 1) * 11400714819323198485u;
    return &s;
}

static void work(void *state, uint64_t units)
{
    struct compute *s = state;
    s->checksum += calculate(s->table, units);
    if (s->chunks == 0)
        s->chunk = units;
    if (units == s->chunk)
        s->chunks++;
    else
        s->last = units;
}

static void restart(void *state)
{
    struct compute *s = state;
    s->checksum = s->chunk = s->chunks = s->last = 0;
}

/* Every chunk starts from the same seed, so two fresh calculations tell what the sum must be. */
static const char *verify(void *state)
{
    const struct compute *s = state;
    uint64_t expected = s->chunks * calculate(s->table, s->chunk);
    if (s->last != 0)
        expected += calculate(s->table, s->last);
    return s->checksum == expected ? NULL : "the checksum differs from that of a fresh calculation";
}

static const cm_kernel kernel = {
    .name = "compute",
    .help = "usage: compute [--units N]\n"
            "\n"
            "Integer and floating-point arithmetic in registers with a 512-byte table, until SIGTERM; then the\n"
            "checksum is verified against a fresh calculation.\n"
            "\n"
            "  --units N   stop after N units\n"
            "  --help      show this and stop\n"
            "\n"
            "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one iteration.\n"
            "Exit status: 0 done, 2 bad arguments, 3 the result is wrong.\n",
    .step = 1,
    .prepare = prepare,
    .work = work,
    .restart = restart,
    .verify = verify,
};

int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }
