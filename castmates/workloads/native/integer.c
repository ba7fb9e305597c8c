/* integer: multiplications, shifts and exclusive-ors in registers, in eight chains side by side: the integer units. */
#include "kernel.h"

#define INTEGER_CHAINS 4

struct integer {
    uint64_t linear[INTEGER_CHAINS];  /* x = x * INTEGER_FACTOR + an odd number of its own */
    uint64_t shifted[INTEGER_CHAINS]; /* x ^= x << 13; x ^= x >> 7; x ^= x << 17 */
    uint64_t done;            /* iterations */
};

#define INTEGER_FACTOR 6364136223846793005u

static CM_SCALAR uint64_t integer_shift(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

static void integer_restart(void *state)
{
    struct integer *s = state;
    for (unsigned i = 0; i < INTEGER_CHAINS; i++)
        s->linear[i] = s->shifted[i] = 88172645463325252u + i;
    s->done = 0;
}

static void *integer_prepare(const cm_options *options, unsigned thread)
{
    struct integer *s = cm_state(sizeof *s);
    (void)options;
    (void)thread;
    if (s != NULL)
        integer_restart(s);
    return s;
}

static __attribute__((noinline)) CM_SCALAR void integer_work(void *state, uint64_t units)
{
    struct integer *s = state;
    uint64_t a = s->linear[0], b = s->linear[1], c = s->linear[2], d = s->linear[3];
    uint64_t e = s->shifted[0], f = s->shifted[1], g = s->shifted[2], h = s->shifted[3];
    for (uint64_t i = 0; i < units; i++) {
        CM_STEP(a, a * INTEGER_FACTOR + 1);
        CM_STEP(b, b * INTEGER_FACTOR + 3);
        CM_STEP(c, c * INTEGER_FACTOR + 5);
        CM_STEP(d, d * INTEGER_FACTOR + 7);
        CM_STEP(e, integer_shift(e));
        CM_STEP(f, integer_shift(f));
        CM_STEP(g, integer_shift(g));
        CM_STEP(h, integer_shift(h));
    }
    *s = (struct integer){{a, b, c, d}, {e, f, g, h}, s->done + units};
}

/* Where a linear chain stands after so many steps: two steps of x*m + a are one of x*m*m + a*m + a. */
static uint64_t integer_linear_after(uint64_t x, uint64_t added, uint64_t steps)
{
    for (uint64_t m = INTEGER_FACTOR; steps > 0; steps /= 2) {
        if (steps % 2 == 1)
            x = x * m + added;
        added = added * m + added;
        m *= m;
    }
    return x;
}

static uint64_t integer_times(const uint64_t *matrix, uint64_t bits)
{
    uint64_t product = 0;
    for (unsigned i = 0; i < 64; i++)
        product ^= bits >> i & 1 ? matrix[i] : 0;
    return product;
}

/* Where a shifted chain stands after so many steps: a step is linear in the bits, so a matrix, which can be squared. */
static uint64_t integer_shifted_after(uint64_t x, uint64_t steps)
{
    uint64_t matrix[64], squared[64];
    for (unsigned i = 0; i < 64; i++)
        matrix[i] = integer_shift((uint64_t)1 << i);
    for (; steps > 0; steps /= 2) {
        if (steps % 2 == 1)
            x = integer_times(matrix, x);
        for (unsigned i = 0; i < 64; i++)
            squared[i] = integer_times(matrix, matrix[i]);
        memcpy(matrix, squared, sizeof matrix);
    }
    return x;
}

static const char *integer_verify(void *state)
{
    const struct integer *s = state;
    struct integer first;
    integer_restart(&first);
    for (unsigned i = 0; i < INTEGER_CHAINS; i++) {
        if (s->linear[i] != integer_linear_after(first.linear[i], 2 * i + 1, s->done))
            return "a chain of multiplications does not stand where its number of steps leads";
        if (s->shifted[i] != integer_shifted_after(first.shifted[i], s->done))
            return "a chain of shifts does not stand where its number of steps leads";
    }
    return NULL;
}

static const cm_kernel integer_kernel = {
    .name = "integer",
    .does = "Multiplications, shifts and exclusive-ors of 64-bit integers in registers, in eight chains side by side: "
            "the integer units of a core, no memory.",
    .unit = "one iteration, a step of each chain",
    .takes = CM_RATE | CM_THREADS,
    .defaults = {.threads = 1},
    .step = 1,
    .prepare = integer_prepare,
    .work = integer_work,
    .restart = integer_restart,
    .verify = integer_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&integer_kernel, argc, argv); }
#endif
