/* How long a chunk of work is, and how a wanted rate is held. */
#ifndef CASTMATES_PACE_H
#define CASTMATES_PACE_H

#include "options.h"

#define CM_WARM_UP_NS 50000000u   /* before a chunk is sized, so that caches and clock are at work */
#define CM_SHORT_CHUNK_NS 500000u /* a chunk lasts from this to twice this when nothing disturbs it */
#define CM_PACED_CHUNK_NS 10000u  /* the same where a rate is held, so that the work is spread evenly over time */
#define CM_PACED_APART_NS 1000000 /* these chunks are due no further apart, unless a step is that much work */
#define CM_BEAT_NS 500000u        /* where a rate is held, a beat comes when this has passed */
#define CM_PATIENCE_NS 20000000u  /* what is missed is made up for, unless that is more than this much time's work */

/* A thread's schedule: the n-th unit is due at origin + n * ns_per_unit. */
typedef struct {
    double ns_per_unit; /* 0: as fast as it can */
    uint64_t began;
    uint64_t origin;
    uint64_t done;     /* units */
    uint64_t late;     /* ns, at the last look */
    uint64_t patience; /* ns */
    uint64_t stopped;  /* ns in which it was not allowed to run: frozen, or without a CPU */
} cm_pace;

static inline void cm_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline cm_pace cm_start_pace(double rate, uint64_t chunk)
{
    cm_pace pace = {.ns_per_unit = rate > 0 ? 1e9 / rate : 0, .began = cm_now()};
    double four_chunks = 4 * pace.ns_per_unit * (double)chunk;
    pace.origin = pace.began;
    pace.patience = four_chunks > CM_PATIENCE_NS ? (uint64_t)four_chunks : CM_PATIENCE_NS;
    return pace;
}

/* Shorten a chunk, where the rate of a thread is so low that it would be due seldom. */
static inline uint64_t cm_paced_chunk(const cm_kernel *kernel, uint64_t chunk, double rate)
{
    uint64_t steps = (uint64_t)(rate * CM_PACED_APART_NS / 1e9 / (double)kernel->step);
    uint64_t often = (steps > 0 ? steps : 1) * kernel->step;
    return often < chunk ? often : chunk;
}

/* Wait until the next chunk is due, without giving the CPU away: a sleep would end too late, and let the clock and the
   caches of an idle CPU change. Returns the time. */
static inline uint64_t cm_wait_until_due(cm_pace *pace)
{
    uint64_t due = pace->origin + (uint64_t)((double)pace->done * pace->ns_per_unit);
    uint64_t now = cm_now();
    while (now < due && !cm_stopped) {
        cm_relax();
        now = cm_now();
    }
    uint64_t late = now > due ? now - due : 0;
    if (late > pace->patience) {
        /* One chunk cannot be that slow: a thaw must not be followed by a burst. */
        if (late - pace->late > pace->patience)
            pace->stopped += late - pace->late;
        pace->origin += late;
        late = 0;
    }
    pace->late = late;
    return now;
}

/* The rate that was held while it was allowed to run, in units a second. */
static inline double cm_held(const cm_pace *pace)
{
    uint64_t took = cm_now() - pace->began - pace->stopped;
    return took > 0 ? 1e9 * (double)pace->done / (double)took : 0;
}

static inline uint64_t cm_best_time(const cm_kernel *kernel, void *state, uint64_t units)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5 && !cm_stopped; i++) {
        uint64_t begin = cm_now();
        kernel->work(state, units);
        uint64_t took = cm_now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

/* Choose, once per launch, how many units make a chunk that lasts at least so long. */
static inline uint64_t cm_size_chunk(const cm_kernel *kernel, void *state, uint64_t least_ns)
{
    uint64_t units = kernel->step;
    for (uint64_t begin = cm_now(), end = begin + CM_WARM_UP_NS; begin < end && !cm_stopped; begin = cm_now()) {
        kernel->work(state, units);
        if (cm_now() - begin < least_ns / 2)
            units *= 2;
    }
    while (cm_best_time(kernel, state, units) < least_ns)
        units *= 2;
    return units;
}

#endif
