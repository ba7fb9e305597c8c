/* Tasks whose answer the processor's own counters must give. What a compiler could change is written in assembler:
   of x86-64 and aarch64; on other processors those tasks report that they have no known answer. */
#ifndef CASTMATES_KNOWN_CORE_H
#define CASTMATES_KNOWN_CORE_H

#include "known.h"

#if defined(__x86_64__)
#define BACK "sub $1, %0\n\tjnz 1b"
#define JUMP "jmp 2f\n2:\n\t"
#define ADD "add %1, %0\n\t"
#elif defined(__aarch64__)
#define BACK "subs %0, %0, #1\n\tb.ne 1b"
#define JUMP "b 2f\n2:\n\t"
#define ADD "add %0, %0, %1\n\t"
#endif

#ifdef BACK
static const char *has_assembler(const known_options *told)
{
    (void)told;
    return NULL;
}

/* 98 instructions that do nothing, a subtraction and a jump: 100. */
static const char *count_instructions(uint64_t units)
{
    __asm__ volatile("1:\n\t.rept 98\n\tnop\n\t.endr\n\t" BACK : "+r"(units)::"cc");
    return NULL;
}

/* 9 jumps to the next instruction, and one back: 10. */
static const char *count_branches(uint64_t units)
{
    __asm__ volatile("1:\n\t.rept 9\n\t" JUMP ".endr\n\t" BACK : "+r"(units)::"cc");
    return NULL;
}

/* 100 additions, each of which waits for the one before: a cycle each. */
static const char *count_cycles(uint64_t units)
{
    uint64_t sum = 0, one = 1;
    for (; units > 0; units--)
        __asm__ volatile(".rept 100\n\t" ADD ".endr" : "+r"(sum) : "r"(one) : "cc");
    return NULL;
}
#else
static const char *has_assembler(const known_options *told)
{
    (void)told;
    return "its loop is written for x86-64 and aarch64 only, and a compiler's own has no known answer";
}

static const char *count_instructions(uint64_t units) { return units ? has_assembler(NULL) : NULL; }
static const char *count_branches(uint64_t units) { return count_instructions(units); }
static const char *count_cycles(uint64_t units) { return count_instructions(units); }
#endif

/* A jump that is taken by the toss of a coin: every second one is guessed wrongly. */
static const char *count_misses(uint64_t units)
{
    static uint64_t seed = 88172645463325252u; /* goes on, so that no portion tosses coins that were learnt before */
    uint64_t heads = 0;
    for (; units > 0; units--)
        if (known_random(&seed) >> 40 & 1)
            __asm__ volatile("" : "+r"(heads)); /* what must happen in one case only needs a jump */
    return NULL;
}

#define EIGHT(what) what what what what what what what what

static const char *count_loads(uint64_t units)
{
    static volatile uint64_t word[8];
    for (; units > 0; units--) {
        EIGHT((void)word[0];)
        EIGHT((void)word[4];)
    }
    return NULL;
}

static const char *count_stores(uint64_t units)
{
    static volatile uint64_t word[8] __attribute__((unused));
    for (; units > 0; units--) {
        EIGHT(word[0] = units;)
        EIGHT(word[4] = units;)
    }
    return NULL;
}

static struct {
    char *memory;
    uint64_t bytes, at, step;
    void **here;
} known_memory;

static const char *prepare_memory(const known_options *told, int huge)
{
    known_memory.bytes = told->bytes;
    known_memory.memory = known_fresh(told->bytes);
    if (known_memory.memory == NULL)
        return "there is not enough memory";
    if (huge)
        madvise(known_memory.memory, told->bytes, MADV_HUGEPAGE);
    memset(known_memory.memory, 0, told->bytes);
    return NULL;
}

static const char *prepare_stream(const known_options *told) { return prepare_memory(told, 1); }

/* One load from each line, from the first to the last and again. */
static const char *stream(uint64_t units)
{
    for (; units > 0; units--) {
        (void)*(volatile uint64_t *)(known_memory.memory + known_memory.at);
        known_memory.at = known_memory.at + LINE < known_memory.bytes ? known_memory.at + LINE : 0;
    }
    return NULL;
}

/* Where the pointer of one step lies: in its own line, or in one line of a page, those of other pages in other sets. */
static void **place_of(uint64_t number)
{
    uint64_t step = known_memory.step;
    return (void **)(known_memory.memory + number * step + (step > LINE ? number % (step / LINE) * LINE : 0));
}

/* Join the places to one random cycle (Sattolo's shuffle). */
static const char *prepare_cycle(const known_options *told, uint64_t step, int huge)
{
    const char *why = prepare_memory(told, huge);
    uint64_t seed = 20240607, count = told->bytes / step;
    known_memory.step = step;
    if (why != NULL || count < 2)
        return why != NULL ? why : "the working set is too small";
    for (uint64_t i = 0; i < count; i++)
        *place_of(i) = place_of(i);
    for (uint64_t i = count - 1; i > 0; i--) {
        void **one = place_of(i), **other = place_of(known_random(&seed) % i), *swapped = *one;
        *one = *other;
        *other = swapped;
    }
    known_memory.here = place_of(0);
    return NULL;
}

static const char *prepare_chase(const known_options *told) { return prepare_cycle(told, LINE, 1); }
static const char *prepare_pages(const known_options *told) { return prepare_cycle(told, known_page(), 0); }

/* Loads that wait for one another. */
static const char *chase(uint64_t units)
{
    void **here = known_memory.here;
    for (; units > 0; units--)
        here = *(void **volatile *)here;
    known_memory.here = here;
    return NULL;
}

#endif
