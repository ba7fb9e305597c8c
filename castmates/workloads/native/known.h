/* What the parts of `known` share: a task with a known answer is a table, and memory that it may want. */
#ifndef CASTMATES_KNOWN_H
#define CASTMATES_KNOWN_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets, MADV_NOHUGEPAGE */
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LINE 64u

typedef struct {
    uint64_t bytes;        /* the working set, where a task has one */
    int cpu;               /* stay there; -1: anywhere */
    const char *directory; /* for a file */
} known_options;

typedef struct {
    const char *name;
    const char *unit;                                  /* what one unit is */
    const char *(*prepare)(const known_options *told); /* NULL, or why it cannot be done here; may be NULL */
    const char *(*work)(uint64_t units);               /* NULL, or why the answer is not known after all */
} known_task;

static inline uint64_t known_page(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

/* Fresh small pages, never touched; a kernel without huge pages refuses the advice, and is right. */
static inline char *known_fresh(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static inline int known_stay(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

/* xorshift64: the same numbers on every launch. */
static inline uint64_t known_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

#endif
