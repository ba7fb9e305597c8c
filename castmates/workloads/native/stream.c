/* stream: the triad a = b + s*c over three arrays, for ever: an antagonist that wants memory bandwidth. */
#include "kernel.h"

#define ELEMENTS_PER_MIB (1048576u / sizeof(double))

struct stream {
    double *a, *b, *c;
    uint64_t elements;
    uint64_t at;   /* the next element */
    uint64_t pass; /* over the arrays; the scale changes with it, so that a stale element is seen */
};

static double scale(uint64_t pass) { return (double)(3 + pass % 8); }
static double first_b(uint64_t i) { return (double)(i % 1021); }
static double first_c(uint64_t i) { return (double)(i * 7 % 1019); }

static void *prepare(uint64_t bytes)
{
    static struct stream s;
    s.elements = bytes / (3 * sizeof(double));
    s.a = cm_allocate(bytes);
    if (s.a == NULL)
        return NULL;
    s.b = s.a + s.elements;
    s.c = s.b + s.elements;
    for (uint64_t i = 0; i < s.elements; i++) {
        s.b[i] = first_b(i);
        s.c[i] = first_c(i);
        s.a[i] = s.b[i] + scale(7) * s.c[i]; /* as the pass before the first one would leave it */
    }
    return &s;
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c, double factor, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        a[i] = b[i] + factor * c[i];
}

/* Each 3 MiB moved are a MiB of every array: the elements go round as often as that takes. */
static void work(void *state, uint64_t units)
{
    struct stream *s = state;
    uint64_t left = units / 3 * ELEMENTS_PER_MIB;
    while (left > 0) {
        uint64_t n = s->elements - s->at < left ? s->elements - s->at : left;
        triad(s->a + s->at, s->b + s->at, s->c + s->at, scale(s->pass), n);
        __asm__ volatile("" ::: "memory");
        left -= n;
        s->at += n;
        if (s->at == s->elements) {
            s->at = 0;
            s->pass++;
        }
    }
}

static void restart(void *state) { (void)state; }

static const char *verify(void *state)
{
    const struct stream *s = state;
    for (uint64_t i = 0; i < s->elements; i++) {
        double factor = scale(i < s->at ? s->pass : s->pass + 7);
        if (s->a[i] != first_b(i) + factor * first_c(i))
            return "an element of the sum is not b + s*c of its last pass";
    }
    return NULL;
}

static const cm_kernel kernel = {
    .name = "stream",
    .help = "usage: stream [--bytes N] [--units N]\n"
            "\n"
            "The triad a = b + s*c over three arrays, until SIGTERM; then the values are verified.\n"
            "\n"
            "  --bytes N   size of the three arrays together (default 64M)\n"
            "  --units N   stop after N units; rounded up to a multiple of 3\n"
            "  --help      show this and stop\n"
            "\n"
            "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one MiB read or written by the triad\n"
            "(8 bytes each of a, b and c; the read that fetches a line of a before it is written is not counted).\n"
            "Exit status: 0 done, 1 no memory, 2 bad arguments, 3 the result is wrong.\n",
    .default_bytes = 64u << 20,
    .step = 3,
    .prepare = prepare,
    .work = work,
    .restart = restart,
    .verify = verify,
};

int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }
