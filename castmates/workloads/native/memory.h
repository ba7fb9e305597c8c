/* Memory for the kernels: pages that are there, states that share no line, and random numbers that repeat. */
#ifndef CASTMATES_MEMORY_H
#define CASTMATES_MEMORY_H

#include "heartbeat.h"
#include "pins.h"

#define CM_LINE 64u              /* bytes in a cache line */
#define CM_HUGE_PAGE (2u << 20)  /* bytes */

/* Zeroed memory whose pages are all present, at the start of a page (a huge one, where these are asked for); NULL
   with errno. The thread that calls it touches it first. */
static inline void *cm_allocate(uint64_t bytes, int huge)
{
    uint64_t whole = huge ? (bytes + 2 * CM_HUGE_PAGE - 1) / CM_HUGE_PAGE * CM_HUGE_PAGE : bytes;
    int present = huge ? 0 : MAP_POPULATE;
    if (whole < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | present, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (!huge)
        return memory;
    memory += (CM_HUGE_PAGE - (uintptr_t)memory % CM_HUGE_PAGE) % CM_HUGE_PAGE;
    if (madvise(memory, bytes, MADV_HUGEPAGE) < 0)
        fprintf(stderr, "this kernel gives no huge pages (%s): usual pages are taken\n", strerror(errno));
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((volatile char *)memory)[at] = 0;
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
