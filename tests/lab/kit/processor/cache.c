/*
 * A last-level cache that allocates by way masks, above each core's own cache.
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdlib.h>
#include "cache.h"

enum { OWN_WAYS = 4, NEAR = 256, FAR_AGE = 3, LEADERS = 32, CHOICE = 1024 };

typedef struct { uint64_t tag; uint32_t used; uint16_t owner; uint8_t age; bool dirty; } Line;
typedef struct { uint64_t tag; uint32_t used; uint16_t owner; bool dirty; } Own;
typedef struct { Own *lines; uint32_t near[NEAR]; } Core;     /* near: where a line was found last */

struct Cache {
    CacheShape is;
    Line *lines;                                              /* set by set; tag is line + 1, 0 is empty */
    Core cores[CACHE_CPUS];
    int64_t held[CACHE_OWNERS];
    uint32_t clock, fills, inserted;
    int32_t choice;                                           /* of the adaptive policy's two ways to insert */
};

Cache *cache_new(const CacheShape *shape)
{
    Cache *c = calloc(1, sizeof *c);
    c->is = *shape;
    c->lines = calloc((size_t)shape->sets * shape->ways, sizeof *c->lines);
    return c;
}

int64_t cache_lines(const Cache *c, unsigned owner)
{
    return c->held[owner];
}

static Own *own_set(Cache *c, unsigned cpu, uint64_t line)
{
    Core *core = &c->cores[cpu];
    if (!core->lines) {
        core->lines = calloc((size_t)c->is.own_sets * OWN_WAYS, sizeof *core->lines);
    }
    return &core->lines[line % c->is.own_sets * OWN_WAYS];
}

static Line *find(Cache *c, uint64_t line)
{
    Line *set = &c->lines[line % c->is.sets * c->is.ways];
    for (uint32_t k = 0; k < c->is.ways; k++) {
        if (set[k].tag == line + 1) {
            return &set[k];
        }
    }
    return NULL;
}

static void forget(Cache *c, Line *l)
{
    c->held[l->owner]--;
    l->tag = 0;
    l->dirty = false;
}

/* Where the last-level cache has all that cores have, what it loses they lose; whether one had changed it. */
static bool recall(Cache *c, uint64_t line)
{
    bool dirty = false;
    for (unsigned cpu = 0; cpu < CACHE_CPUS; cpu++) {
        if (!c->cores[cpu].lines) {
            continue;
        }
        Own *set = own_set(c, cpu, line);
        for (int k = 0; k < OWN_WAYS; k++) {
            if (set[k].tag == line + 1) {
                dirty |= set[k].dirty;
                set[k].tag = 0;
            }
        }
    }
    return dirty;
}

static Line *oldest(Cache *c, Line *set, uint64_t mask)
{
    Line *best = NULL;
    for (uint32_t k = 0; k < c->is.ways; k++) {
        if (mask >> k & 1) {
            if (!set[k].tag) {
                return &set[k];
            }
            if (!best || c->clock - set[k].used > c->clock - best->used) {
                best = &set[k];
            }
        }
    }
    return best;
}

static Line *farthest(Cache *c, Line *set, uint64_t mask)
{
    for (;;) {
        for (uint32_t k = 0; k < c->is.ways; k++) {
            if ((mask >> k & 1) && (!set[k].tag || set[k].age >= FAR_AGE)) {
                return &set[k];
            }
        }
        for (uint32_t k = 0; k < c->is.ways; k++) {
            set[k].age += (mask >> k & 1);
        }
    }
}

/* Two ways to insert are tried on a few sets each (DRRIP); the others follow the one that misses less. */
static uint8_t first_age(Cache *c, uint32_t set)
{
    uint32_t kind = set % LEADERS;
    bool rarely = kind == 0 ? false : kind == 1 ? true : c->choice > 0;
    c->choice += kind == 0 && c->choice < CHOICE ? 1 : kind == 1 && c->choice > -CHOICE ? -1 : 0;
    return rarely && ++c->inserted % 32 ? FAR_AGE : FAR_AGE - 1;
}

/* Put a line in; return how many had to be written back for it. */
static uint32_t fill(Cache *c, uint64_t line, uint64_t mask, unsigned owner, bool dirty)
{
    uint32_t set = line % c->is.sets, written = 0;
    Line *at = &c->lines[set * c->is.ways];
    at = c->is.policy == POLICY_ADAPTIVE ? farthest(c, at, mask) : oldest(c, at, mask);
    if (at->tag) {
        written = at->dirty | (c->is.victim ? false : recall(c, at->tag - 1));
        forget(c, at);
    }
    *at = (Line) { line + 1, ++c->clock, owner, first_age(c, set), dirty };
    c->held[owner]++;
    return written;
}

static uint64_t mask_of_fill(Cache *c, uint64_t mask)
{
    return c->is.leak && (++c->fills * 2654435761u >> 16) % c->is.leak == 0 ? (1ull << c->is.ways) - 1 : mask;
}

/* Make room in a core's own cache: what leaves it goes into a victim cache, or tells the other that it changed. */
static Own *make_room(Cache *c, Own *set, uint64_t mask, uint32_t *written)
{
    Own *at = set;
    for (int k = 0; k < OWN_WAYS; k++) {
        if (!set[k].tag) {
            return &set[k];
        }
        if (c->clock - set[k].used > c->clock - at->used) {
            at = &set[k];
        }
    }
    uint64_t line = at->tag - 1;
    if (c->is.victim) {
        *written += fill(c, line, mask_of_fill(c, mask), at->owner, at->dirty);
    } else if (at->dirty) {
        Line *below = find(c, line);
        if (below) {
            below->dirty = true;
        }
    }
    at->tag = 0;
    return at;
}

CacheAccess cache_access(Cache *c, unsigned cpu, uint64_t line, bool write, uint64_t mask, unsigned owner)
{
    CacheAccess done = { ACCESS_OWN, 0, 0 };
    Own *set = own_set(c, cpu, line), *own;
    uint32_t *near = &c->cores[cpu].near[line % NEAR];
    bool dirty = write;

    own = &c->cores[cpu].lines[*near];
    if (own->tag == line + 1) {
        own->used = ++c->clock;
        own->dirty |= write;
        return done;
    }
    for (int k = 0; k < OWN_WAYS; k++) {
        if (set[k].tag == line + 1) {
            set[k].used = ++c->clock;
            set[k].dirty |= write;
            *near = &set[k] - c->cores[cpu].lines;
            return done;
        }
    }
    Line *l = find(c, line);
    if (l) {
        done.where = ACCESS_HIT;
        l->used = ++c->clock;
        l->age = 0;
        if (c->is.victim) {
            dirty |= l->dirty;
            forget(c, l);
        }
    } else {
        done.where = ACCESS_MISS;
        done.read = 1;
        if (!c->is.victim) {
            done.written = fill(c, line, mask_of_fill(c, mask), owner, false);
        }
        for (uint32_t k = 1; k <= c->is.ahead; k++) {
            if (!find(c, line + k)) {
                done.read++;
                done.written += fill(c, line + k, (1ull << c->is.ways) - 1, owner, false);
            }
        }
    }
    own = make_room(c, set, mask, &done.written);
    *own = (Own) { line + 1, ++c->clock, owner, dirty };
    *near = own - c->cores[cpu].lines;
    return done;
}

uint32_t cache_device(Cache *c, uint64_t line, uint64_t mask)
{
    Line *l = find(c, line);
    if (l) {
        l->dirty = true;
        return 0;
    }
    return fill(c, line, mask, 0, true);
}
