/* spin: the placebo: it keeps a core as busy as a program would, and touches neither memory nor the kernel. */
#include "kernel.h"

static uint64_t result;

static void *prepare(const cm_options *options, unsigned thread)
{
    (void)options;
    (void)thread;
    return &result;
}

/* Four independent chains keep the multiplier busy; the assembler statement pins them to general registers. */
static __attribute__((noinline)) void work(void *state, uint64_t units)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (uint64_t i = 0; i < units; i++) {
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        a = a * 6364136223846793005u + 1;
        b = b * 6364136223846793005u + 3;
        c = c * 6364136223846793005u + 5;
        d = d * 6364136223846793005u + 7;
    }
    *(uint64_t *)state = a ^ b ^ c ^ d;
}

static void restart(void *state) { *(uint64_t *)state = 0; }

/* There is no result to check: that it ran is what its heartbeat tells. */
static const char *verify(void *state)
{
    (void)state;
    return NULL;
}

static const cm_kernel kernel = {
    .name = "spin",
    .does = "The placebo: a loop in registers. It touches no memory and makes no system call, but for one heartbeat "
            "record of 16 bytes about every millisecond.",
    .unit = "one iteration",
    .step = 1,
    .prepare = prepare,
    .work = work,
    .restart = restart,
    .verify = verify,
};

int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }
