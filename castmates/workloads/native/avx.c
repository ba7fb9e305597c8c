/* avx: multiply-adds of whole vectors in registers, in twelve chains: the widest floating-point units of this build. */
#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define AVX_WIDTH 8
#define AVX_KIND "512-bit vectors (AVX-512)"
#elif defined(__AVX__)
#define AVX_WIDTH 4
#define AVX_KIND "256-bit vectors (AVX)"
#elif defined(__SSE2__)
#define AVX_WIDTH 2
#define AVX_KIND "128-bit vectors (SSE2)"
#else
#define AVX_WIDTH 2
#define AVX_KIND "128-bit vectors"
#endif

#if defined(__AVX512F__) || defined(__FMA__) || defined(__aarch64__)
#define AVX_FUSED 1
#define AVX_HOW "fused multiply-adds"
#else
#define AVX_FUSED 0
#define AVX_HOW "multiplications and additions"
#endif

#define AVX_CHAINS 12
#define AVX_BLOCK 1024 /* steps of each chain from the same first values; the results of all blocks are alike */

typedef double avx_vector __attribute__((vector_size(8 * AVX_WIDTH)));
typedef uint64_t avx_bits __attribute__((vector_size(8 * AVX_WIDTH)));

struct avx {
    uint64_t sum;    /* of the bits of all results */
    uint64_t blocks; /* that are done */
};

static void avx_restart(void *state) { *(struct avx *)state = (struct avx){0, 0}; }

static void *avx_prepare(const cm_options *options, unsigned thread)
{
    (void)options;
    (void)thread;
    return cm_state(sizeof(struct avx));
}

/* The values swing round a fixed point with a full mantissa and come nearer to it all the time, so none is special. */
static double avx_first(unsigned chain, unsigned lane) { return 1.0 + (chain * AVX_WIDTH + lane) / 128.0; } /* exact */
static double avx_factor(void) { return -(1.0 - 1.0 / 4096); }
static double avx_added(void) { return 2.7182818284590452; }

static inline avx_vector avx_all(double value)
{
    avx_vector all;
    for (unsigned lane = 0; lane < AVX_WIDTH; lane++)
        all[lane] = value;
    return all;
}

/* x * factor + added, fused or not as this build decides: no compiler chooses (the flags forbid fusing the rest). */
static inline avx_vector avx_step(avx_vector x, avx_vector factor, avx_vector added)
{
#if defined(__AVX512F__)
    return (avx_vector)_mm512_fmadd_pd((__m512d)x, (__m512d)factor, (__m512d)added);
#elif defined(__FMA__)
    return (avx_vector)_mm256_fmadd_pd((__m256d)x, (__m256d)factor, (__m256d)added);
#elif defined(__aarch64__)
    return (avx_vector)vfmaq_f64((float64x2_t)added, (float64x2_t)x, (float64x2_t)factor);
#else
    return x * factor + added;
#endif
}

#define AVX_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define AVX_BEGIN(chain) avx_vector x##chain = first[chain];
#define AVX_STEP(chain)                           \
    x##chain = avx_step(x##chain, factor, added); \
    CM_PIN_REAL(x##chain);
#define AVX_SUM(chain) sum += (avx_bits)x##chain;

/* The chains have names, because an array might be kept in memory; everything that a step wants is pinned. */
static __attribute__((noinline)) uint64_t avx_block(const avx_vector *first, avx_vector factor, avx_vector added)
{
    avx_bits sum = {0};
    AVX_EACH(AVX_BEGIN)
    for (unsigned i = 0; i < AVX_BLOCK; i++) {
        CM_PIN_REAL(factor);
        CM_PIN_REAL(added);
        AVX_EACH(AVX_STEP)
    }
    AVX_EACH(AVX_SUM)
    uint64_t total = 0;
    for (unsigned lane = 0; lane < AVX_WIDTH; lane++)
        total += sum[lane];
    return total;
}

static void avx_work(void *state, uint64_t units)
{
    struct avx *s = state;
    avx_vector first[AVX_CHAINS];
    for (unsigned chain = 0; chain < AVX_CHAINS; chain++)
        for (unsigned lane = 0; lane < AVX_WIDTH; lane++)
            first[chain][lane] = avx_first(chain, lane);
    for (uint64_t left = units / AVX_BLOCK; left > 0; left--) {
        __asm__ volatile("" : : "r"(first) : "memory"); /* or one block might do for all: their values are alike */
        s->sum += avx_block(first, avx_all(avx_factor()), avx_all(avx_added()));
        s->blocks++;
    }
}

/* The same steps with plain numbers, one after the other. */
static uint64_t avx_expected(void)
{
    uint64_t sum = 0;
    for (unsigned chain = 0; chain < AVX_CHAINS; chain++) {
        for (unsigned lane = 0; lane < AVX_WIDTH; lane++) {
            double x = avx_first(chain, lane);
            for (unsigned i = 0; i < AVX_BLOCK; i++) {
                volatile double product = x * avx_factor();
                x = AVX_FUSED ? __builtin_fma(x, avx_factor(), avx_added()) : product + avx_added();
            }
            uint64_t own;
            memcpy(&own, &x, sizeof own);
            sum += own;
        }
    }
    return sum;
}

static const char *avx_verify(void *state)
{
    const struct avx *s = state;
    return s->sum == s->blocks * avx_expected() ? NULL : "the results differ from those of plain numbers";
}

static const cm_kernel avx_kernel = {
    .name = "avx",
    .does = "Chains of " AVX_HOW " in registers, with " AVX_KIND " in this build: the floating-point units, and with "
            "them power and clock frequency; no memory.",
    .unit = "one step of all 12 chains, in blocks of 1024",
    .takes = CM_RATE | CM_THREADS,
    .defaults = {.threads = 1},
    .step = AVX_BLOCK,
    .prepare = avx_prepare,
    .work = avx_work,
    .restart = avx_restart,
    .verify = avx_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&avx_kernel, argc, argv); }
#endif
