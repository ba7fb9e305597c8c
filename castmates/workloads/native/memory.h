/* Memory for the kernels: pages that are there, states that share no line, and random numbers that repeat. */
#ifndef CASTMATES_MEMORY_H
#define CASTMATES_MEMORY_H

#include "pages.h"
#include "pins.h"

#define CM_LINE 64u /* bytes in a cache line */

/* Zeroed memory whose pages are all present: huge ones, at the start of one, where these are asked for and it is as
   large as one, else usual ones, whatever the system would give. NULL with errno. The thread that calls it touches it
   first. */
static inline void *cm_allocate(uint64_t bytes, int huge)
{
    int aligned = huge && bytes >= CM_HUGE_PAGE;
    uint64_t whole = aligned ? (bytes + 2 * CM_HUGE_PAGE - 1) / CM_HUGE_PAGE * CM_HUGE_PAGE : bytes;
    if (whole < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (aligned)
        memory += (CM_HUGE_PAGE - (uintptr_t)memory % CM_HUGE_PAGE) % CM_HUGE_PAGE;
    cm_make_present(memory, bytes, aligned);
    return memory;
}

/* A zeroed state of a thread, which shares no cache line (nor the neighbour that is fetched with it) with another. */
static inline void *cm_state(size_t size)
{
    void *state = aligned_alloc(2 * CM_LINE, (size + 2 * CM_LINE - 1) / (2 * CM_LINE) * (2 * CM_LINE));
    return state == NULL ? NULL : memset(state, 0, size);
}

/* xorshift64*: the same numbers on every launch; the seed is not 0. */
static inline uint64_t cm_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717u;
}

#endif
