/* Sizes of working sets: bytes, shares of a cache, or ways of the last-level cache of the CPU it runs on. */
#ifndef CASTMATES_SIZES_H
#define CASTMATES_SIZES_H

#include <limits.h>
#include <sched.h>

#include "program.h"

#define CM_SYSFS_VARIABLE "CASTMATES_SYSFS" /* for tests: the root that stands for /sys */
#define CM_SIZE_EXAMPLES "64M, 0.5llc, 2ways or 0.5l2"
#define CM_SIZE_GRAIN 4096u /* what is not given in bytes is rounded down to a multiple */

typedef struct {
    unsigned level; /* 0: unknown */
    unsigned ways;  /* 0: unknown */
    unsigned first; /* the lowest CPU that shares it: it names the cache */
    uint64_t bytes;
} cm_cache;

/* Read the first word of a file of one cache; 0 where there is none. */
static inline int cm_cache_word(int cpu, int index, const char *file, char *word, int size)
{
    char path[PATH_MAX];
    const char *root = getenv(CM_SYSFS_VARIABLE);
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/cache/index%d/%s", root ? root : "/sys", cpu, index, file);
    FILE *stream = fopen(path, "re");
    if (stream == NULL)
        return 0;
    int got = fgets(word, size, stream) != NULL;
    fclose(stream);
    word[got ? strcspn(word, " \n") : 0] = '\0';
    return *word != '\0';
}

/* Find the cache of this level (0: the last one) for data of this CPU. */
static inline cm_cache cm_find_cache(int cpu, unsigned level)
{
    cm_cache found = {0, 0, 0, 0};
    char word[64];
    for (int index = 0; cm_cache_word(cpu, index, "level", word, sizeof word); index++) {
        unsigned here = (unsigned)strtoul(word, NULL, 10);
        if ((level != 0 && here != level) || here < found.level)
            continue;
        if (!cm_cache_word(cpu, index, "type", word, sizeof word) || strcmp(word, "Instruction") == 0)
            continue;
        found.level = here;
        found.bytes = cm_cache_word(cpu, index, "size", word, sizeof word) ? cm_parse_number(word) : 0;
        found.ways = 0;
        if (cm_cache_word(cpu, index, "ways_of_associativity", word, sizeof word))
            found.ways = (unsigned)strtoul(word, NULL, 10);
        found.first = 0;
        if (cm_cache_word(cpu, index, "shared_cpu_list", word, sizeof word))
            found.first = (unsigned)strtoul(word, NULL, 10);
    }
    return found;
}

/* The number of caches of this level (0: the last one) that so many threads lie on, the i-th on the i-th CPU that we
   may use; 1 where the kernel does not show it. */
static inline unsigned cm_count_caches(unsigned threads, unsigned level)
{
    cpu_set_t allowed, firsts;
    unsigned seen = 0;
    if (threads == 1 || sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return 1;
    CPU_ZERO(&firsts);
    for (int cpu = 0; cpu < CPU_SETSIZE && seen < threads; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        CPU_SET(cm_find_cache(cpu, level).first, &firsts);
        seen++;
    }
    return CPU_COUNT(&firsts) > 0 ? (unsigned)CPU_COUNT(&firsts) : 1;
}

/* Split `0.5llc` into 0.5 and what follows; 0 where there is no such number. */
static inline double cm_leading_number(const char *text, const char **rest)
{
    double number = 0, place = 1;
    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (*text - '0');
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++)
            number += (*text - '0') * (place /= 10);
    *rest = text;
    return number;
}

static inline void cm_size_unknown(const char *name, const char *text, int cpu, const char *what)
{
    fprintf(stderr,
            "%s: --bytes %s cannot be resolved, since the kernel tells no %s of CPU %d: give bytes, such as 64M\n",
            name, text, what, cpu);
    exit(2);
}

/* Resolve a share of a cache or a number of ways, of each cache that the threads lie on, and print once what it comes to;
   0 where the text is neither. */
static inline uint64_t cm_resolve_size(const char *name, const char *text, unsigned threads)
{
    const char *of;
    double number = cm_leading_number(text, &of);
    int ways = strcmp(of, "way") == 0 || strcmp(of, "ways") == 0;
    int level = of[0] == 'l' && of[1] >= '1' && of[1] <= '9' && of[2] == '\0' ? of[1] - '0' : 0;
    if (number <= 0 || number > 1e6 || (!ways && level == 0 && strcmp(of, "llc") != 0))
        return 0;
    int cpu = sched_getcpu();
    cm_cache cache = cm_find_cache(cpu, (unsigned)level);
    if (cache.bytes == 0)
        cm_size_unknown(name, text, cpu, level == 0 ? "last-level cache" : "cache of this level");
    if (ways && cache.ways == 0)
        cm_size_unknown(name, text, cpu, "number of ways of the last-level cache");
    unsigned caches = cm_count_caches(threads, (unsigned)level);
    double whole = caches * (ways ? (double)cache.bytes / cache.ways : (double)cache.bytes);
    uint64_t bytes = (uint64_t)(number * whole) / CM_SIZE_GRAIN * CM_SIZE_GRAIN;
    fprintf(stderr, "%s: --bytes %s is %llu bytes: the level-%u cache of CPU %d has %llu bytes in %u ways", name, text,
            (unsigned long long)bytes, cache.level, cpu, (unsigned long long)cache.bytes, cache.ways);
    if (caches > 1)
        fprintf(stderr, ", and the threads lie on %u of them", caches);
    fputc('\n', stderr);
    return bytes;
}

/* Read a size of at least so many bytes, or report what is wrong with it. */
static inline uint64_t cm_size_or_exit(const char *name, const char *text, unsigned threads, uint64_t least)
{
    uint64_t bytes = cm_parse_number(text);
    if (bytes == 0)
        bytes = cm_resolve_size(name, text, threads);
    if (bytes < least) {
        fprintf(stderr, "%s: --bytes must be a size from %llu bytes on, such as " CM_SIZE_EXAMPLES ", but is '%s'\n",
                name, (unsigned long long)least, text);
        exit(2);
    }
    return bytes;
}

#endif
