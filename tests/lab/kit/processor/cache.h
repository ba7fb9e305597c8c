/*
 * A last-level cache that allocates by way masks, above each core's own cache.
 * No clock in here: rdt.c says what an access costs.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef I386_RDT_CACHE_H
#define I386_RDT_CACHE_H
#include <stdbool.h>
#include <stdint.h>

enum { CACHE_OWNERS = 256, CACHE_CPUS = 64 };
enum { POLICY_LRU, POLICY_ADAPTIVE };        /* the latter protects lines that were used again */
enum { ACCESS_OWN, ACCESS_HIT, ACCESS_MISS };

typedef struct {
    uint32_t sets, ways;        /* of the last-level cache; lines have 64 bytes */
    uint32_t own_sets;          /* of each core's own cache, which has four ways */
    uint32_t policy;
    bool victim;                /* it holds what cores evict; else it has all that cores have */
    uint32_t leak;              /* one fill in so many ignores its mask; 0: none does */
    uint32_t ahead;             /* lines that a miss brings in after its own, in any way; 0: none */
} CacheShape;

typedef struct {
    int where;                  /* ACCESS_... */
    uint32_t read, written;     /* lines that moved from and to memory */
} CacheAccess;

typedef struct Cache Cache;
Cache *cache_new(const CacheShape *shape);
CacheAccess cache_access(Cache *c, unsigned cpu, uint64_t line, bool write, uint64_t mask, unsigned owner);
/* What a device writes: it allocates in these ways, for no owner. Lines that had to be written back. */
uint32_t cache_device(Cache *c, uint64_t line, uint64_t mask);
int64_t cache_lines(const Cache *c, unsigned owner);
#endif
