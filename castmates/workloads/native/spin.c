/* spin: the placebo: it keeps a core as busy as a program would, and touches neither memory nor the kernel. */
#include "kernel.h"

static uint64_t result;

static void *prepare(uint64_t bytes)
{
    (void)bytes;
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
    .help = "usage: spin [--units N]\n"
            "\n"
            "The placebo: a loop in registers, until SIGTERM. It touches no memory and makes no system call, but for\n"
            "one heartbeat record of 16 bytes about every millisecond.\n"
            "\n"
            "  --units N   stop after N units\n"
            "  --help      show this and stop\n"
            "\n"
            "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one iteration.\n"
            "Exit status: 0 done, 2 bad arguments.\n",
    .step = 1,
    .prepare = prepare,
    .work = work,
    .restart = restart,
    .verify = verify,
};

int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }
