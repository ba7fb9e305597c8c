/* tlb: dependent loads from one line of each page, in random order: address translation, with little data. */
#include "kernel.h"

struct tlb {
    char *memory;
    uint64_t page; /* bytes */
    uint64_t pages;
    unsigned chains;
    unsigned turn; /* the chain that gets the next load where there are fewer than chains */
    uint64_t loads[CM_MOST_PARALLEL]; /* of each chain */
    void **first[CM_MOST_PARALLEL];   /* where it began: a chain's share of the cycle before the next one's */
    void **here[CM_MOST_PARALLEL];
};

/* The lines of the pages are of different sets of the caches, or these would be full with a few pages. */
static void **tlb_line(const struct tlb *s, uint64_t page)
{
    return (void **)(s->memory + page * s->page + page % (s->page / CM_LINE) * CM_LINE);
}

static void *tlb_prepare(const cm_options *options, unsigned thread)
{
    struct tlb *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->page = cm_page();
    s->pages = cm_share(options) / s->page;
    s->memory = cm_allocate(s->pages * s->page, options->huge);
    if (s->memory == NULL)
        return NULL;
    for (uint64_t page = 0; page < s->pages; page++)
        *tlb_line(s, page) = tlb_line(s, page);
    /* Sattolo's shuffle leaves a single cycle through all pages. */
    uint64_t seed = 20240607;
    for (uint64_t page = s->pages - 1; page > 0; page--) {
        void **one = tlb_line(s, page), **other = tlb_line(s, cm_random(&seed) % page), *swapped = *one;
        *one = *other;
        *other = swapped;
    }
    s->chains = options->parallel;
    void **at = tlb_line(s, 0);
    for (uint64_t i = 0, chain = 0; i < s->pages && chain < s->chains; i++, at = *at)
        if (i == chain * s->pages / s->chains)
            s->first[chain] = s->here[chain] = at, chain++;
    return s;
}

/* A separate load: those of several chains cannot become one that gathers. */
static inline void **tlb_next(void **at)
{
    void **next = *at;
    CM_PIN(next);
    return next;
}

/* Let each chain take so many loads: one chain in a register, several side by side. */
static __attribute__((noinline)) void tlb_walk(void ***here, unsigned chains, uint64_t steps)
{
    if (chains == 1) {
        void **at = here[0];
        for (; steps > 0; steps--)
            at = tlb_next(at);
        here[0] = at;
    }
    for (; chains > 1 && steps > 0; steps--)
        for (unsigned chain = 0; chain < chains; chain++)
            here[chain] = tlb_next(here[chain]);
}

static void tlb_work(void *state, uint64_t units)
{
    struct tlb *s = state;
    tlb_walk(s->here, s->chains, units / s->chains);
    for (unsigned chain = 0; chain < s->chains; chain++)
        s->loads[chain] += units / s->chains;
    for (uint64_t rest = units % s->chains; rest > 0; rest--) {
        s->here[s->turn] = tlb_next(s->here[s->turn]);
        s->loads[s->turn]++;
        s->turn = s->turn + 1 == s->chains ? 0 : s->turn + 1;
    }
}

static void tlb_restart(void *state) { (void)state; }

/* Walk the cycle once more from each chain's begin, checking every link before it is followed. */
static const char *tlb_verify(void *state)
{
    const struct tlb *s = state;
    for (unsigned chain = 0; chain < s->chains; chain++) {
        void **at = s->first[chain];
        for (uint64_t i = 0; i < s->pages; i++) {
            if (i == s->loads[chain] % s->pages && at != s->here[chain])
                return "a chain does not stand where its number of loads leads";
            if (i > 0 && at == s->first[chain])
                return "the cycle is closed before all pages were seen";
            uint64_t page = (uint64_t)((char *)*at - s->memory) / s->page;
            if (page >= s->pages || *at != tlb_line(s, page))
                return "a link leads out of the cycle";
            at = *at;
        }
        if (at != s->first[chain])
            return "the cycle does not lead back to its start";
    }
    return NULL;
}

static const cm_kernel tlb_kernel = {
    .name = "tlb",
    .does = "Dependent loads from one line of every page, in random order: address translation; with pages of 4 KiB "
            "the data itself is a 64th of the working set.",
    .unit = "one load from a page",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_PARALLEL | CM_HUGE,
    .defaults = {.bytes = 256u << 20, .threads = 1, .parallel = 1},
    .least_pages = CM_MOST_PARALLEL,
    .step = 1,
    .prepare = tlb_prepare,
    .work = tlb_work,
    .restart = tlb_restart,
    .verify = tlb_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&tlb_kernel, argc, argv); }
#endif
