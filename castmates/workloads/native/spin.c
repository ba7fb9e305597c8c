/* spin: the placebo: it keeps a core as busy as a program would, and touches neither memory nor the kernel. */
#include "kernel.h"

static uint64_t spin_result;

static void *spin_prepare(const cm_options *options, unsigned thread)
{
    (void)options;
    (void)thread;
    return &spin_result;
}

#define SPIN_FACTOR 6364136223846793005u

/* Four independent chains keep the multiplier busy. */
static __attribute__((noinline)) CM_SCALAR void spin_work(void *state, uint64_t units)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (uint64_t i = 0; i < units; i++) {
        CM_STEP(a, a * SPIN_FACTOR + 1);
        CM_STEP(b, b * SPIN_FACTOR + 3);
        CM_STEP(c, c * SPIN_FACTOR + 5);
        CM_STEP(d, d * SPIN_FACTOR + 7);
    }
    *(uint64_t *)state = a ^ b ^ c ^ d;
}

static void spin_restart(void *state) { *(uint64_t *)state = 0; }

/* There is no result to check: that it ran is what its heartbeat shows. */
static const char *spin_verify(void *state)
{
    (void)state;
    return NULL;
}

static const cm_kernel spin_kernel = {
    .name = "spin",
    .does = "The placebo: a loop in registers. It touches no memory and makes no system call, but for one heartbeat "
            "record of 16 bytes about every millisecond.",
    .unit = "one iteration",
    .step = 1,
    .prepare = spin_prepare,
    .work = spin_work,
    .restart = spin_restart,
    .verify = spin_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&spin_kernel, argc, argv); }
#endif
