/* mix: several kernels in one process, in turns of fixed work: programs that are neither one nor the other. */
#define CM_PART /* the kernels without their `main` */
#include "avx.c"
#include "chase.c"
#include "gather.c"
#include "hashjoin.c"
#include "icache.c"
#include "integer.c"
#include "pagefault.c"
#include "search.c"
#include "spmv.c"
#include "stencil.c"
#include "stream.c"
#include "tlb.c"
#include "tree.c"

#define MIX_MOST 8 /* parts */

struct mix_part {
    const char *word; /* of the command line */
    const cm_kernel *kernel;
    uint64_t units; /* of each round */
    cm_options options;
};

struct mix {
    void *states[MIX_MOST];
};

static struct mix_part mix_parts[MIX_MOST];
static unsigned mix_count;

static const cm_kernel *const mix_kernels[] = {
    &avx_kernel,     &chase_kernel,     &gather_kernel, &hashjoin_kernel, &icache_kernel,
    &integer_kernel, &pagefault_kernel, &search_kernel, &spmv_kernel,     &stencil_kernel,
    &stream_kernel,  &tlb_kernel,       &tree_kernel,   NULL,
};

static void *mix_prepare(const cm_options *options, unsigned thread)
{
    struct mix *s = cm_state(sizeof *s);
    for (unsigned i = 0; s != NULL && i < mix_count; i++) {
        cm_options *own = &mix_parts[i].options;
        own->threads = options->threads;
        own->huge = options->huge;
        s->states[i] = mix_parts[i].kernel->prepare(own, thread);
        if (s->states[i] == NULL)
            return NULL;
    }
    return s;
}

static void mix_work(void *state, uint64_t units)
{
    struct mix *s = state;
    for (; units > 0; units--)
        for (unsigned i = 0; i < mix_count; i++)
            mix_parts[i].kernel->work(s->states[i], mix_parts[i].units);
}

static void mix_restart(void *state)
{
    struct mix *s = state;
    for (unsigned i = 0; i < mix_count; i++)
        mix_parts[i].kernel->restart(s->states[i]);
}

static const char *mix_verify(void *state)
{
    static char said[256];
    struct mix *s = state;
    for (unsigned i = 0; i < mix_count; i++) {
        const char *wrong = mix_parts[i].kernel->verify(s->states[i]);
        if (wrong != NULL) {
            snprintf(said, sizeof said, "in part %s, %s", mix_parts[i].kernel->name, wrong);
            return said;
        }
    }
    return NULL;
}

static void mix_refuse(const char *word, const char *why)
{
    fprintf(stderr, "mix: '%s' is no part of a mix (KERNEL[.MODE]:UNITS[:BYTES]): %s\n", word, why);
    exit(2);
}

/* Whether each thread gets of each part what that kernel needs. */
static void mix_check(const cm_options *options)
{
    char why[128];
    for (unsigned i = 0; i < mix_count; i++) {
        const struct mix_part *part = &mix_parts[i];
        cm_options own = part->options;
        own.threads = options->threads;
        if (!(part->kernel->takes & CM_BYTES) || cm_share(&own) >= cm_least_bytes(part->kernel))
            continue;
        snprintf(why, sizeof why, "%llu bytes shared out among %u threads leave %llu for each, fewer than %llu",
                 (unsigned long long)own.bytes, own.threads, (unsigned long long)cm_share(&own),
                 (unsigned long long)cm_least_bytes(part->kernel));
        mix_refuse(part->word, why);
    }
}

static const cm_kernel mix_kernel = {
    .name = "mix",
    .does = "Kernels in one process, in rounds: in each round every part does its fixed work. A part is a word "
            "KERNEL:UNITS, KERNEL:UNITS:BYTES or KERNEL.MODE:UNITS:BYTES, such as tree:50:64M or "
            "gather.update:100:16M; the kernels are avx, chase, gather, hashjoin, icache, integer, pagefault, search, "
            "spmv, stencil, stream, tlb and tree.",
    .unit = "one round",
    .takes = CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.threads = 1},
    .step = 1,
    .check = mix_check,
    .prepare = mix_prepare,
    .work = mix_work,
    .restart = mix_restart,
    .verify = mix_verify,
};

static const cm_kernel *mix_find(const char *name, const char *word)
{
    for (const cm_kernel *const *kernel = mix_kernels; *kernel != NULL; kernel++)
        if (strcmp((*kernel)->name, name) == 0)
            return *kernel;
    mix_refuse(word, "mix --help lists the kernels");
    return NULL;
}

static const char *mix_mode(const cm_kernel *kernel, const char *name, const char *word)
{
    const char *const *mode = kernel->modes;
    while (mode != NULL && *mode != NULL && name != NULL && strcmp(*mode, name) != 0)
        mode++;
    if (name != NULL && (mode == NULL || *mode == NULL))
        mix_refuse(word, "the kernel has no such mode");
    return mode == NULL ? NULL : *mode;
}

/* Read a word such as gather.update:100:16M. */
static void mix_add(const char *word)
{
    char text[128];
    if (mix_count == MIX_MOST)
        mix_refuse(word, "there are too many parts");
    if (snprintf(text, sizeof text, "%s", word) >= (int)sizeof text)
        mix_refuse(word, "it is too long");
    char *units = strchr(text, ':'), *bytes;
    *units++ = '\0';
    if ((bytes = strchr(units, ':')) != NULL)
        *bytes++ = '\0';
    char *mode = strchr(text, '.');
    if (mode != NULL)
        *mode++ = '\0';
    struct mix_part *part = &mix_parts[mix_count++];
    part->word = word;
    part->kernel = mix_find(text, word);
    part->options = cm_default_options(part->kernel);
    part->options.mode = mix_mode(part->kernel, mode, word);
    part->units = cm_parse_number(units);
    if (part->units == 0 || part->units % part->kernel->step != 0)
        mix_refuse(word, "its units must be a whole number, and a multiple of the kernel's step");
    if (bytes != NULL && !(part->kernel->takes & CM_BYTES))
        mix_refuse(word, "the kernel has no working set");
    if (bytes != NULL)
        part->options.bytes = cm_size_or_exit("mix", bytes, 1, cm_least_bytes(part->kernel));
}

/* The words with a colon are parts; cm_main understands the others. */
int main(int argc, char **argv)
{
    int left = 1, help = 0;
    for (int i = 1; i < argc; i++) {
        help |= strcmp(argv[i], "--help") == 0;
        if (argv[i][0] != '-' && strchr(argv[i], ':') != NULL)
            mix_add(argv[i]);
        else
            argv[left++] = argv[i];
    }
    argv[left] = NULL;
    if (mix_count == 0 && !help) {
        fputs("mix: name at least one part, such as tree:50:64M; see mix --help\n", stderr);
        return 2;
    }
    return cm_main(&mix_kernel, left, argv);
}
