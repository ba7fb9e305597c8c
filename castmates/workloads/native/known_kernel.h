/* Tasks whose answer the kernel's own counters must give: faults, switches, migrations, time on a CPU. */
#ifndef CASTMATES_KNOWN_KERNEL_H
#define CASTMATES_KNOWN_KERNEL_H

#include "known.h"

#define BATCH 256u /* pages at a time */

static void write_pages(char *memory, uint64_t pages)
{
    for (uint64_t page = 0; page < pages; page++)
        ((volatile char *)memory)[page * known_page()] = 1;
}

static uint64_t next_batch(uint64_t *units)
{
    uint64_t pages = *units < BATCH ? *units : BATCH;
    *units -= pages;
    return pages;
}

/* Write to pages that were given back: a minor fault each. */
static const char *touch(uint64_t units)
{
    static _Thread_local char *memory;
    if (memory == NULL)
        memory = known_fresh(BATCH * known_page());
    if (memory == NULL)
        return "there is not enough memory";
    while (units > 0) {
        write_pages(memory, next_batch(&units));
        if (madvise(memory, BATCH * known_page(), MADV_DONTNEED) != 0)
            return "pages cannot be given back";
    }
    return NULL;
}

/* The same with memory that is mapped anew each time. */
static const char *map_touch(uint64_t units)
{
    while (units > 0) {
        char *memory = known_fresh(BATCH * known_page());
        if (memory == NULL)
            return "there is not enough memory";
        write_pages(memory, next_batch(&units));
        munmap(memory, BATCH * known_page());
    }
    return NULL;
}

/* Let the kernel write to fresh pages, which so faults itself: what is counted in user mode only misses these. */
static const char *kernel_touch(uint64_t units)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    const char *why = zero < 0 ? "/dev/zero cannot be read" : NULL;
    while (units > 0 && why == NULL) {
        uint64_t bytes = next_batch(&units) * known_page();
        char *memory = known_fresh(bytes);
        if (memory == NULL || read(zero, memory, bytes) != (ssize_t)bytes)
            why = "/dev/zero did not fill the memory";
        if (memory != NULL)
            munmap(memory, bytes);
    }
    if (zero >= 0)
        close(zero);
    return why;
}

#define APART 16u                 /* pages from one that is read to the next, so that no neighbour comes with it */
#define FILE_PAGES (1024 * APART) /* more units begin anew: each start writes and syncs all of it */

static struct {
    int file;
    char *pages;
} known_file = {.file = -1};

static const char *prepare_disk(const known_options *told)
{
    char name[4096];
    uint64_t page = known_page();
    snprintf(name, sizeof name, "%s/castmates-known-XXXXXX", told->directory);
    known_file.file = mkostemp(name, O_CLOEXEC);
    if (known_file.file < 0)
        return "no file can be written there";
    unlink(name);
    char *content = malloc(page);
    if (content == NULL)
        return "there is not enough memory";
    memset(content, 7, page);
    for (uint64_t i = 0; i < FILE_PAGES; i++)
        if (write(known_file.file, content, page) != (ssize_t)page)
            return "no file can be written there";
    free(content);
    fsync(known_file.file);
    known_file.pages = mmap(NULL, FILE_PAGES * page, PROT_READ, MAP_SHARED, known_file.file, 0);
    if (known_file.pages == MAP_FAILED)
        return "the file cannot be mapped";
    madvise(known_file.pages, FILE_PAGES * page, MADV_RANDOM); /* no reading ahead */
    return NULL;
}

/* Read pages of a file that are in no memory: a major fault each. */
static const char *disk(uint64_t units)
{
    uint64_t page = known_page();
    while (units > 0) {
        uint64_t pages = units < FILE_PAGES / APART ? units : FILE_PAGES / APART;
        madvise(known_file.pages, FILE_PAGES * page, MADV_DONTNEED);
        posix_fadvise(known_file.file, 0, 0, POSIX_FADV_DONTNEED);
        for (uint64_t i = 0; i < pages; i++) {
            unsigned char there = 1;
            char *at = known_file.pages + i * APART * page;
            if (mincore(at, page, &there) == 0 && there & 1)
                return "the file's pages stay in memory, as those of tmpfs do";
            (void)*(volatile char *)at;
        }
        units -= pages;
    }
    return NULL;
}

/* Two threads on one CPU that wake each other and wait: two switches a round trip. */
static int to_partner[2], from_partner[2];

static void *partner(void *nothing)
{
    char byte;
    while (read(to_partner[0], &byte, 1) == 1)
        if (write(from_partner[1], &byte, 1) != 1)
            break;
    return nothing;
}

static const char *prepare_pingpong(const known_options *told)
{
    pthread_t thread;
    if (known_stay(told->cpu >= 0 ? told->cpu : sched_getcpu()) != 0)
        return "it may not choose its CPU";
    if (pipe(to_partner) != 0 || pipe(from_partner) != 0 || pthread_create(&thread, NULL, partner, NULL) != 0)
        return "it can have no second thread";
    return NULL;
}

static const char *pingpong(uint64_t units)
{
    char byte = 1;
    for (; units > 0; units--)
        if (write(to_partner[1], &byte, 1) != 1 || read(from_partner[0], &byte, 1) != 1)
            return "the other thread has ended";
    return NULL;
}

static int known_cpus[2];

static const char *prepare_migrate(const known_options *told)
{
    cpu_set_t allowed;
    int found = 0;
    (void)told;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return "its CPUs are not told";
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            known_cpus[found++] = cpu;
    if (found < 2)
        return "it takes two CPUs";
    return known_stay(known_cpus[0]) == 0 ? NULL : "it may not choose its CPU";
}

/* Go to the other CPU: a migration each. */
static const char *migrate(uint64_t units)
{
    static unsigned turn;
    for (; units > 0; units--)
        if (known_stay(known_cpus[++turn % 2]) != 0)
            return "it may not choose its CPU";
    return NULL;
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Use so many microseconds of CPU time. */
static const char *spin(uint64_t units)
{
    uint64_t until = thread_ns() + units * 1000;
    while (thread_ns() < until)
        ;
    return NULL;
}

/* Three threads do the same task: two that were there before anybody counted, and one that is made for it. */
static struct {
    pthread_barrier_t begin, end;
    const char *(*task)(uint64_t units);
    uint64_t units;
    const char *why;
} crew;

static void *crew_once(void *nothing)
{
    const char *why = crew.task(crew.units);
    if (why != NULL)
        crew.why = why;
    return nothing;
}

static void *crew_for_ever(void *nothing)
{
    for (;;) {
        pthread_barrier_wait(&crew.begin);
        crew_once(NULL);
        pthread_barrier_wait(&crew.end);
    }
    return nothing;
}

static const char *prepare_crew(const known_options *told)
{
    (void)told;
    pthread_barrier_init(&crew.begin, NULL, 3);
    pthread_barrier_init(&crew.end, NULL, 3);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, crew_for_ever, NULL) != 0)
            return "it can have no second thread";
    }
    return NULL;
}

static const char *crew_work(const char *(*task)(uint64_t), uint64_t units)
{
    pthread_t late;
    crew.task = task;
    crew.units = units;
    if (pthread_create(&late, NULL, crew_once, NULL) != 0)
        return "it can have no further thread";
    pthread_barrier_wait(&crew.begin);
    pthread_barrier_wait(&crew.end);
    pthread_join(late, NULL);
    return crew.why;
}

static const char *crew_touch(uint64_t units) { return crew_work(map_touch, units); }
static const char *crew_spin(uint64_t units) { return crew_work(spin, units); }

#endif
