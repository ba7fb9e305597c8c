/* icache: a program of a few MiB made at its start, run line after line in random order: instruction fetch. */
#include "kernel.h"
#include "passes.h"

#define ICACHE_LINE 64u
#define ICACHE_SEGMENT 64u /* lines that follow one another before the program returns */

#if defined(__x86_64__)
#define ICACHE_KNOWN 1
#elif defined(__aarch64__)
#define ICACHE_KNOWN 1
#else
#define ICACHE_KNOWN 0
#endif

typedef uint64_t icache_function(uint64_t);

struct icache {
    unsigned char *code;
    uint32_t *order; /* the i-th line to run is at order[i] */
    uint64_t lines;  /* whole segments */
    cm_passes pass;  /* in segments */
};

/* What a line does with the value: it adds a number, rotates, and adds another one. */
static uint32_t icache_first(uint64_t line) { return (uint32_t)cm_mix(line + 1) & 0xfff; }
static uint32_t icache_second(uint64_t line) { return (uint32_t)(cm_mix(line + 1) >> 12) & 0xfff; }
static unsigned icache_turns(uint64_t line) { return 1 + (unsigned)(cm_mix(line + 1) >> 32) % 63; }

#if defined(__aarch64__)
/* add x0, x0, #first; ror x0, x0, #turns; add x0, x0, #second; b next or ret */
static void icache_write(unsigned char *code, uint64_t line, int64_t next)
{
    uint32_t words[4] = {0x91000000u | icache_first(line) << 10, 0x93c00000u | icache_turns(line) << 10,
                         0x91000000u | icache_second(line) << 10, 0xd65f03c0u};
    if (next >= 0)
        words[3] = 0x14000000u | ((uint32_t)((next - (int64_t)line) * (ICACHE_LINE / 4) - 3) & 0x3ffffffu);
    memcpy(code + line * ICACHE_LINE, words, sizeof words);
}
#else
/* lea rax, [rdi + first]; ror rax, turns; lea rdi, [rax + second]; jmp next, or mov rax, rdi; ret */
static void icache_write(unsigned char *code, uint64_t line, int64_t next)
{
    unsigned char *at = code + line * ICACHE_LINE;
    uint32_t first = icache_first(line), second = icache_second(line);
    int32_t jump = (int32_t)((next - (int64_t)line) * (int64_t)ICACHE_LINE - 23);
    memcpy(at, "\x48\x8d\x87....\x48\xc1\xc8.\x48\x8d\xb8....\xe9....", 23);
    memcpy(at + 3, &first, 4);
    at[10] = (unsigned char)icache_turns(line);
    memcpy(at + 14, &second, 4);
    memcpy(at + 19, &jump, 4);
    if (next < 0)
        memcpy(at + 18, "\x48\x89\xf8\xc3", 4);
}
#endif

static int icache_shuffle(struct icache *s)
{
    uint64_t seed = 20240607;
    s->order = malloc(s->lines * sizeof *s->order);
    for (uint64_t i = 0; s->order != NULL && i < s->lines; i++) {
        uint64_t j = cm_random(&seed) % (i + 1);
        s->order[i] = s->order[j];
        s->order[j] = (uint32_t)i;
    }
    return s->order != NULL;
}

static void *icache_prepare(const cm_options *options, unsigned thread)
{
    struct icache *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    if (!ICACHE_KNOWN || options->bytes > 1u << 27) { /* a jump of Arm reaches no further */
        errno = ICACHE_KNOWN ? EFBIG : ENOSYS;
        return NULL;
    }
    s->pass.length = cm_share(options) / ICACHE_LINE / ICACHE_SEGMENT;
    s->lines = s->pass.length * ICACHE_SEGMENT;
    s->code = cm_allocate(s->lines * ICACHE_LINE, options->huge);
    if (s->code == NULL || !icache_shuffle(s))
        return NULL;
    for (uint64_t i = 0; i < s->lines; i++)
        icache_write(s->code, s->order[i], i % ICACHE_SEGMENT == ICACHE_SEGMENT - 1 ? -1 : (int64_t)s->order[i + 1]);
    __builtin___clear_cache((char *)s->code, (char *)s->code + s->lines * ICACHE_LINE);
    return mprotect(s->code, s->lines * ICACHE_LINE, PROT_READ | PROT_EXEC) < 0 ? NULL : s;
}

/* Every segment begins with its number, so the value that it returns is known. */
static void icache_work(void *state, uint64_t units)
{
    struct icache *s = state;
    for (uint64_t left = units / ICACHE_SEGMENT; left > 0; left--) {
        icache_function *segment;
        void *begin = s->code + (uint64_t)s->order[s->pass.at * ICACHE_SEGMENT] * ICACHE_LINE;
        memcpy(&segment, &begin, sizeof segment);
        s->pass.sum += segment(s->pass.at);
        cm_advance(&s->pass, 1);
    }
}

static void icache_restart(void *state) { (void)state; }

static uint64_t icache_found(const void *state, uint64_t segment)
{
    const struct icache *s = state;
    uint64_t value = segment;
    for (uint64_t i = segment * ICACHE_SEGMENT; i < (segment + 1) * ICACHE_SEGMENT; i++) {
        unsigned turns = icache_turns(s->order[i]);
        value += icache_first(s->order[i]);
        value = (value >> turns | value << (64 - turns)) + icache_second(s->order[i]);
    }
    return value;
}

static const char *icache_verify(void *state)
{
    const struct icache *s = state;
    int right = cm_sum_is_right(&s->pass, icache_found, s);
    return right ? NULL : "the program gave another sum than its instructions make";
}

static const cm_kernel icache_kernel = {
    .name = "icache",
    .does = "A program as large as the working set, made at the start, whose lines of 64 bytes run in random order: "
            "instruction caches, instruction TLB and branch targets.",
    .unit = "one line of the program run, in segments of 64",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 4u << 20, .threads = 1},
    .least_bytes = ICACHE_LINE * ICACHE_SEGMENT,
    .step = ICACHE_SEGMENT,
    .prepare = icache_prepare,
    .work = icache_work,
    .restart = icache_restart,
    .verify = icache_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&icache_kernel, argc, argv); }
#endif
