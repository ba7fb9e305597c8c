/* Which pages working sets lie on: a kernel decides, not the system's default, and what it asked for is checked. */
#ifndef CASTMATES_PAGES_H
#define CASTMATES_PAGES_H

#include "heartbeat.h"

#define CM_HUGE_PAGE (2u << 20) /* bytes; the kernel has other sizes where its usual page is not 4 KiB */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

typedef struct {
    uintptr_t from, end;
} cm_range;

/* The ranges that are to be on huge pages; threads prepare one after the other, so no lock is needed. */
static cm_range *cm_huge_ranges;
static unsigned cm_huge_count;

static inline void cm_expect_huge(const void *memory, uint64_t bytes)
{
    cm_range *more = realloc(cm_huge_ranges, (cm_huge_count + 1) * sizeof *more);
    if (more == NULL)
        return; /* it will be checked a little less */
    cm_huge_ranges = more;
    cm_huge_ranges[cm_huge_count++] = (cm_range){(uintptr_t)memory, (uintptr_t)memory + bytes};
}

/* Decide on the pages of untouched memory, and have all of them present. A kernel without huge pages refuses both kinds
   of advice, and one before 5.14 the last: then the pages are touched one by one. */
static inline void cm_make_present(char *memory, uint64_t bytes, int huge)
{
    madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (huge)
        cm_expect_huge(memory, bytes);
    if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0)
        return;
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((volatile char *)memory)[at] = 0;
}

static inline int cm_overlaps_huge_range(uintptr_t from, uintptr_t end)
{
    for (unsigned i = 0; i < cm_huge_count; i++)
        if (cm_huge_ranges[i].from < end && from < cm_huge_ranges[i].end)
            return 1;
    return 0;
}

/* The bytes on huge pages in the mappings that hold these ranges, as the kernel counts them; -1: it does not show. */
static inline int64_t cm_on_huge_pages(void)
{
    static char line[8192]; /* longer than a path, whose end would else look like a line */
    FILE *mappings = fopen("/proc/self/smaps", "re");
    int64_t bytes = 0;
    int ours = 0;
    if (mappings == NULL)
        return -1;
    while (fgets(line, sizeof line, mappings) != NULL) {
        unsigned long from, end, kib;
        if (sscanf(line, "%lx-%lx ", &from, &end) == 2)
            ours = cm_overlaps_huge_range(from, end);
        else if (ours && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
            bytes += (int64_t)kib << 10;
    }
    fclose(mappings);
    return bytes;
}

/* Report where huge pages were asked for and the kernel gave fewer; whole ones count, the rest of a range has none. */
static inline void cm_check_pages(const char *name)
{
    uint64_t wanted = 0;
    for (unsigned i = 0; i < cm_huge_count; i++)
        wanted += (cm_huge_ranges[i].end - cm_huge_ranges[i].from) / CM_HUGE_PAGE * CM_HUGE_PAGE;
    int64_t given = wanted > 0 ? cm_on_huge_pages() : 0;
    if (given >= 0 && (uint64_t)given < wanted)
        fprintf(stderr, "%s: wanted %llu bytes on huge pages, has %llu: the rest is on pages of %ld bytes\n", name,
                (unsigned long long)wanted, (unsigned long long)given, sysconf(_SC_PAGESIZE));
}

#endif
