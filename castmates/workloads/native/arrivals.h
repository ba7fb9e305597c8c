/* When requests arrive, and what they ask for: a Poisson process, and keys of which some are more wanted. */
#ifndef CASTMATES_ARRIVALS_H
#define CASTMATES_ARRIVALS_H

#include <math.h>

#include "memory.h"

#define CM_SKEW 0.99 /* of Zipf's law, as in YCSB */

/* A number above 0, up to 1. */
static inline double cm_fraction(uint64_t *seed) { return (double)((cm_random(seed) >> 11) + 1) / 9007199254740992.0; }

/* Times between arrivals are independent, and exponentially distributed about their mean. */
typedef struct {
    double mean_ns;
    double at_ns; /* of the next arrival, from origin; in this precision for hours */
    uint64_t origin;
    uint64_t seed;
} cm_arrivals;

static inline uint64_t cm_due(const cm_arrivals *arrivals) { return arrivals->origin + (uint64_t)arrivals->at_ns; }

static inline void cm_next_arrival(cm_arrivals *arrivals)
{
    arrivals->at_ns -= arrivals->mean_ns * log(cm_fraction(&arrivals->seed));
}

/* Begin anew: a Poisson process has no memory, so that the wait from any moment on is like any other. */
static inline void cm_restart_arrivals(cm_arrivals *arrivals, uint64_t now)
{
    arrivals->origin = now;
    arrivals->at_ns = 0;
    cm_next_arrival(arrivals);
}

/* Keys from 0 on: all alike, or by Zipf's law, of which key 0 is the most wanted (Gray et al., SIGMOD 1994). */
typedef struct {
    unsigned keys;
    int zipf;
    double zeta, eta, half; /* of that paper */
    uint64_t seed;
} cm_keys;

static inline cm_keys cm_make_keys(unsigned keys, int zipf, uint64_t seed)
{
    cm_keys made = {.keys = keys, .zipf = zipf && keys > 2, .seed = seed};
    if (!made.zipf)
        return made;
    for (unsigned i = 1; i <= keys; i++)
        made.zeta += pow(i, -CM_SKEW);
    made.half = pow(0.5, CM_SKEW);
    made.eta = (1 - pow(2.0 / keys, 1 - CM_SKEW)) / (1 - (1 + made.half) / made.zeta);
    return made;
}

static inline unsigned cm_next_key(cm_keys *keys)
{
    double u = cm_fraction(&keys->seed), z = u * keys->zeta;
    if (!keys->zipf)
        return (unsigned)(cm_random(&keys->seed) % keys->keys);
    if (z < 1)
        return 0;
    if (z < 1 + keys->half)
        return 1;
    unsigned key = (unsigned)(keys->keys * pow(keys->eta * u - keys->eta + 1, 1 / (1 - CM_SKEW)));
    return key < keys->keys ? key : keys->keys - 1;
}

#endif
