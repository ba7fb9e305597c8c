/* chase: dependent loads round one random cycle of cache lines: an antagonist (or lead) that wants cache capacity. */
#include "kernel.h"

struct line {
    struct line *next;
    uint64_t padding[7];
};

struct chase {
    struct line *lines;
    uint64_t count;
    struct line *here;
    uint64_t loads;
};

/* xorshift64*: the same cycle on every launch. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717u;
}

static void *prepare(uint64_t bytes)
{
    static struct chase s;
    s.count = bytes / sizeof(struct line);
    s.lines = cm_allocate(bytes);
    if (s.lines == NULL)
        return NULL;
    for (uint64_t i = 0; i < s.count; i++)
        s.lines[i].next = &s.lines[i];
    /* Sattolo's shuffle leaves a single cycle through all lines. */
    uint64_t seed = 20240607;
    for (uint64_t i = s.count - 1; i > 0; i--) {
        uint64_t j = next_random(&seed) % i;
        struct line *swapped = s.lines[i].next;
        s.lines[i].next = s.lines[j].next;
        s.lines[j].next = swapped;
    }
    s.here = s.lines;
    return &s;
}

static struct line *walk(struct line *from, uint64_t loads)
{
    while (loads-- > 0)
        from = from->next;
    return from;
}

static void work(void *state, uint64_t units)
{
    struct chase *s = state;
    s->here = walk(s->here, units);
    s->loads += units;
}

static void restart(void *state)
{
    struct chase *s = state;
    s->here = s->lines;
    s->loads = 0;
}

/* Walk the cycle once more, checking every link before it is followed. */
static const char *verify(void *state)
{
    const struct chase *s = state;
    const struct line *line = s->lines;
    for (uint64_t i = 0; i < s->count; i++) {
        if (i == s->loads % s->count && line != s->here)
            return "it does not stand where its number of loads leads";
        if (i > 0 && line == s->lines)
            return "the cycle is closed before all lines were seen";
        uintptr_t offset = (uintptr_t)line->next - (uintptr_t)s->lines;
        if (offset % sizeof(struct line) != 0 || offset / sizeof(struct line) >= s->count)
            return "a link leads out of the cycle";
        line = line->next;
    }
    return line == s->lines ? NULL : "the cycle does not lead back to its start";
}

static const cm_kernel kernel = {
    .name = "chase",
    .help = "usage: chase [--bytes N] [--units N]\n"
            "\n"
            "Dependent loads round one random cycle of 64-byte lines, until SIGTERM; then the cycle is verified.\n"
            "\n"
            "  --bytes N   size of the memory (default 64M)\n"
            "  --units N   stop after N units\n"
            "  --help      show this and stop\n"
            "\n"
            "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one load; bytes/64 of them are a full cycle.\n"
            "Exit status: 0 done, 1 no memory, 2 bad arguments, 3 the result is wrong.\n",
    .default_bytes = 64u << 20,
    .step = 1,
    .prepare = prepare,
    .work = work,
    .restart = restart,
    .verify = verify,
};

int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }
