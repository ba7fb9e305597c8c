/* Passes: the same places in the same random order again and again, so that what a pass must give is known without
   having watched it: whatever ran, the sum is (whole passes) * (sum of one) + (what the pass begun has given). */
#ifndef CASTMATES_PASSES_H
#define CASTMATES_PASSES_H

#include <stdint.h>

typedef struct {
    uint64_t length; /* of a pass */
    uint64_t at;     /* done of the pass begun */
    uint64_t passes; /* that are over */
    uint64_t sum;    /* of all that was found, modulo 2^64 */
} cm_passes;

/* A number that looks random for each number, other numbers for other numbers. */
static inline uint64_t cm_mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* One of `count` places, every one as likely, for a number that looks random. */
static inline uint64_t cm_place(uint64_t random, uint64_t count)
{
    return (uint64_t)((unsigned __int128)random * count >> 64);
}

/* How many of these units belong to the pass begun. */
static inline uint64_t cm_in_pass(const cm_passes *p, uint64_t units)
{
    return units < p->length - p->at ? units : p->length - p->at;
}

static inline void cm_advance(cm_passes *p, uint64_t units)
{
    p->at += units;
    if (p->at == p->length) {
        p->at = 0;
        p->passes++;
    }
}

/* Whether the sum is what these passes give; `found` is what there is to find in a place of the pass. */
static inline int cm_sum_is_right(const cm_passes *p, uint64_t (*found)(const void *, uint64_t), const void *of)
{
    uint64_t whole = 0, begun = 0;
    for (uint64_t i = 0; i < p->length; i++) {
        if (i == p->at)
            begun = whole;
        whole += found(of, i);
    }
    return p->sum == p->passes * whole + begun;
}

#endif
