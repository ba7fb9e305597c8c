/* Vectors of doubles, as wide as the build has them, and stores past the caches. */
#ifndef CASTMATES_VECTORS_H
#define CASTMATES_VECTORS_H

#include "memory.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__AVX512F__)
#define CM_WIDTH 64u
#elif defined(__AVX__)
#define CM_WIDTH 32u
#else
#define CM_WIDTH 16u
#endif
#define CM_LANES (CM_WIDTH / sizeof(double))
#define CM_PER_LINE (CM_LINE / sizeof(double))

/* It may look at what was stored as doubles. */
typedef double cm_vector __attribute__((vector_size(CM_WIDTH), may_alias));

/* The head of a loop over so many elements, which are whole grains, so that the unrolled loop has no remainder. */
#define CM_GRAIN 32u
#define CM_OVER_VECTORS(i, elements) \
    for (uint64_t i##_grain = 0; i##_grain < (elements) / CM_LANES; i##_grain += CM_GRAIN / CM_LANES) \
        _Pragma("GCC unroll 16") for (uint64_t i = i##_grain; i < i##_grain + CM_GRAIN / CM_LANES; i++)

static inline cm_vector cm_all_lanes(double value)
{
    cm_vector all;
    for (unsigned lane = 0; lane < CM_LANES; lane++)
        all[lane] = value;
    return all;
}

/* Store through the caches, one vector at a time: a compiler would take memcpy or memset, which choose for themselves. */
static inline void cm_store(cm_vector *to, cm_vector value)
{
    CM_PIN_REAL(value);
    *to = value;
}

/* Store past the caches, where this processor can. */
static inline void cm_store_past(cm_vector *to, cm_vector value)
{
#if defined(__AVX512F__)
    _mm512_stream_pd((double *)to, (__m512d)value);
#elif defined(__AVX__)
    _mm256_stream_pd((double *)to, (__m256d)value);
#elif defined(__SSE2__)
    _mm_stream_pd((double *)to, (__m128d)value);
#else
    *to = value;
#endif
}

/* Wait until what was stored past the caches has arrived. */
static inline void cm_stores_arrive(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Add up whole lines of whole numbers that stay small, so that the sum is exact; several additions are under way. */
static inline __attribute__((always_inline)) uint64_t cm_sum(const double *elements, uint64_t count)
{
    const cm_vector *from = (const cm_vector *)elements, *end = from + count / CM_LANES;
    const cm_vector *eights = end - count / CM_LANES % 8;
    cm_vector sums[8] = {{0}};
    uint64_t whole = 0;
    for (; from < eights; from += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += from[j];
    for (; from < end; from++)
        sums[0] += *from;
    for (int j = 1; j < 8; j++)
        sums[0] += sums[j];
    for (unsigned lane = 0; lane < CM_LANES; lane++)
        whole += (uint64_t)sums[0][lane];
    return whole;
}

#endif
