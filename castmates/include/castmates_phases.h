/* Phases, ranges, instants and epochs for Castmates, from C99 and C++: one header, no dependencies but POSIX threads.

   The runner names a shared file in CASTMATES_PHASES; docs/phases.md has the layout and the rules. Without this variable
   every call does nothing. What is no phase of a step is kept where the runner asks for ranges.

   Include it before other headers, or compile with -D_GNU_SOURCE. It may be included in several files of a program:
   they share one state. A step below 0 is none; domain and payload may be NULL; texts are copied.

       castmates_phase_begin("forward", step);      castmates_phase_end();
       castmates_mark("input", step);               castmates_mark(NULL, -1);
       castmates_phase_begin_in("input", "decode", step, "shape=8x128");   castmates_phase_end_in("input");
       castmates_range r = castmates_range_start("input", "load", step, NULL);   castmates_range_end(&r);
       castmates_instant(NULL, "checkpoint", step, NULL);
       castmates_range e = castmates_epoch_begin(3);   castmates_range_end(&e);   */
#ifndef CASTMATES_PHASES_H
#define CASTMATES_PHASES_H

#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

#define CMPH_WEAK __attribute__((weak)) /* one state for all files of a program */
#define CMPH_DEEP 64                    /* phases around each other in one thread */
#define CMPH_PAYLOAD 64
#define CMPH_PLACES 2048 /* of the table in which names are looked up: a power of two, more than there are names */

enum cmph_type { CMPH_PHASE = 1, CMPH_RANGE = 2, CMPH_INSTANT = 3, CMPH_EPOCH = 4 };
enum cmph_said { CMPH_SAID_NAME = 1, CMPH_SAID_PAYLOAD = 2, CMPH_SAID_DOMAIN = 4, CMPH_SAID_END = 8 };
enum cmph_listener { CMPH_UNKNOWN = 0, CMPH_NOBODY = 1, CMPH_LISTENS = 2 };

/* Where the file has what; docs/phases.md explains the numbers. */
#define CMPH_DOMAINS 576
#define CMPH_NAMES 1600
#define CMPH_SLOT 128 /* of a name: its domain and type, and its text */
#define CMPH_TEXT 4
#define CMPH_MOST_NAMES 512
#define CMPH_RECORDS (CMPH_NAMES + CMPH_SLOT * CMPH_MOST_NAMES)
#define CMPH_PLAIN 64 /* of a record: what is before its counts */

typedef struct {
    int type, open, cut; /* cut: the payload was too long */
    int32_t name;        /* in the table of names; below 0 for one that is not there */
    uint32_t thread, length;
    int64_t step, epoch, before;
    uint64_t begin;
    char payload[CMPH_PAYLOAD];
} castmates_range;

typedef struct {
    castmates_range range;
    int domain, marked;
} cmph_frame;

typedef struct {
    int depth, beyond; /* beyond: phases that lie too deep to be recorded */
    uint32_t number;   /* the system's number of the thread */
    cmph_frame frames[CMPH_DEEP];
} cmph_thread;

typedef struct {
    pthread_mutex_t lock;
    int listener, ranges, said; /* ranges: they are kept, and all else that is no phase of a step */
    unsigned char *memory;
    uint32_t last_slot, counters, record, names, domains, first_thread;
    uint64_t head;
    int64_t epoch;
    uint16_t places[CMPH_PLACES]; /* by hash: the number of a name, from 1 */
} cmph_state;

CMPH_WEAK cmph_state cmph = {PTHREAD_MUTEX_INITIALIZER, CMPH_UNKNOWN, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, -1, {0}};
CMPH_WEAK __thread cmph_thread cmph_own = {0, 0, 0, {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}}, 0, 0}}};

static inline uint64_t cmph_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint32_t cmph_self(void)
{
    if (cmph_own.number == 0)
        cmph_own.number = (uint32_t)syscall(SYS_gettid);
    return cmph_own.number;
}

static inline uint32_t cmph_get(uint32_t offset)
{
    uint32_t value;
    memcpy(&value, cmph.memory + offset, sizeof value);
    return value;
}

static inline void cmph_publish(uint32_t offset, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)(cmph.memory + offset), value, __ATOMIC_RELEASE);
}

static inline void cmph_count(uint32_t offset, int64_t change)
{
    __atomic_fetch_add((int64_t *)(void *)(cmph.memory + offset), change, __ATOMIC_RELAXED);
}

/* Print a sentence, once for each kind of trouble. */
static inline void cmph_say(int what, const char *sentence, const char *about)
{
    if ((cmph.said & what) == 0)
        fprintf(stderr, "%s: '%.80s' (docs/phases.md).\n", sentence, about);
    cmph.said |= what;
}

static inline unsigned char *cmph_slot(uint32_t name) { return cmph.memory + CMPH_NAMES + CMPH_SLOT * name; }

static inline uint32_t cmph_hash(const unsigned char *bytes, uint32_t size)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

/* The place of a name's slot in the table of lookups: where it is, or the free one where it belongs. */
static inline uint16_t *cmph_place(const unsigned char *slot)
{
    uint32_t place = cmph_hash(slot, CMPH_SLOT);
    for (;; place++) {
        uint16_t *found = &cmph.places[place & (CMPH_PLACES - 1)];
        if (*found == 0 || memcmp(cmph_slot(*found - 1u), slot, CMPH_SLOT) == 0)
            return found;
    }
}

static inline int cmph_printable(const char *text)
{
    if (text == NULL || *text == '\0')
        return 0;
    for (const unsigned char *one = (const unsigned char *)text; *one; one++)
        if (*one < 0x20 || *one == 0x7f)
            return 0;
    return 1;
}

/* The number of a domain in the table; -1 where it is not there. Under the lock. */
static inline int cmph_domain_known(const char *domain)
{
    if (domain == NULL || *domain == '\0')
        return 0;
    for (uint32_t one = 1; one < cmph.domains; one++)
        if (strncmp((const char *)cmph.memory + CMPH_DOMAINS + 64 * one, domain, 64) == 0)
            return (int)one;
    return -1;
}

/* The same, but it is put into the table if it can be; -1 where it cannot. Under the lock. */
static inline int cmph_domain(const char *domain)
{
    const int known = cmph_domain_known(domain);
    if (known >= 0)
        return known;
    if (!cmph_printable(domain) || strlen(domain) > 63 || cmph.domains >= 16) {
        cmph_say(CMPH_SAID_DOMAIN, "A domain has a name of 1 to 63 printable bytes, there are 16, and this is none", domain);
        return -1;
    }
    memcpy(cmph.memory + CMPH_DOMAINS + 64 * cmph.domains, domain, strlen(domain));
    cmph_publish(36, ++cmph.domains);
    return (int)cmph.domains - 1;
}

/* The number of a name inside what lies around it ("" for nothing), put into the table if it can be. Under the lock. */
static inline int32_t cmph_named(int type, int domain, const char *around, const char *name)
{
    unsigned char slot[CMPH_SLOT];
    const size_t outer = strlen(around), own = name == NULL ? 0 : strlen(name), whole = outer + (outer > 0) + own;
    const int taken = type == CMPH_PHASE && domain == 0 && outer == 0 && own == 7 && memcmp(name, "threads", 7) == 0;
    if (domain < 0)
        return -1;
    if (!cmph_printable(name) || strchr(name, '/') != NULL || taken || whole >= CMPH_SLOT - CMPH_TEXT) {
        cmph_say(CMPH_SAID_NAME, "This is no name of a phase, or too long with those around it", name ? name : "");
        return -1;
    }
    const uint16_t place[2] = {(uint16_t)domain, (uint16_t)type};
    memset(slot, 0, sizeof slot);
    memcpy(slot, place, sizeof place);
    memcpy(slot + CMPH_TEXT, around, outer);
    if (outer > 0)
        slot[CMPH_TEXT + outer] = '/';
    memcpy(slot + CMPH_TEXT + whole - own, name, own);
    uint16_t *found = cmph_place(slot);
    if (*found != 0)
        return *found - 1;
    if (cmph.names >= CMPH_MOST_NAMES) {
        cmph_say(CMPH_SAID_NAME, "The table of names is full, and this is one more", name);
        return -1;
    }
    memcpy(cmph_slot(cmph.names), slot, CMPH_SLOT);
    cmph_publish(32, cmph.names + 1);
    *found = (uint16_t)++cmph.names;
    return (int32_t)cmph.names - 1;
}

static inline void cmph_forget(void) { cmph.listener = CMPH_NOBODY; } /* a child does not write into its parent's file */

static inline int cmph_fits(uint64_t size)
{
    const uint32_t capacity = cmph_get(12);
    cmph.counters = cmph_get(20);
    cmph.record = CMPH_PLAIN + 8 * cmph.counters + CMPH_PAYLOAD;
    cmph.last_slot = capacity - 1;
    return memcmp(cmph.memory, "CASTPHAS", 8) == 0 && cmph_get(8) == 1 && cmph.counters <= 8 && capacity >= 2 &&
           (capacity & (capacity - 1)) == 0 && size == CMPH_RECORDS + (uint64_t)cmph.record * capacity;
}

/* Map the whole file with all its pages present, so that no record meets a page fault. Under the lock. */
static inline int cmph_map(const char *path)
{
    struct stat status;
    void *memory = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "Cannot open the phases file %s: %s.\n", path, strerror(errno));
        return 0;
    }
    cmph.memory = (unsigned char *)memory;
    if (status.st_size >= 64 && cmph_fits((uint64_t)status.st_size)) {
        const pid_t owner = (pid_t)cmph_get(16);
        if (owner == 0 || owner == getpid() || (kill(owner, 0) != 0 && errno == ESRCH))
            return 1;
    } else {
        fprintf(stderr, "%s is not a whole Castmates phases file of version 1.\n", path);
    }
    munmap(memory, (size_t)status.st_size);
    return 0;
}

static inline void cmph_open(void)
{
    const char *path = getenv("CASTMATES_PHASES");
    if (path == NULL || *path == '\0' || !cmph_map(path)) {
        __atomic_store_n(&cmph.listener, CMPH_NOBODY, __ATOMIC_RELEASE);
        return;
    }
    cmph.head = *(uint64_t *)(void *)(cmph.memory + 24);
    cmph.domains = cmph_get(36);
    cmph.ranges = cmph.domains > 0;
    for (cmph.names = 0; cmph.names < cmph_get(32) && cmph.names < CMPH_MOST_NAMES; cmph.names++)
        *cmph_place(cmph_slot(cmph.names)) = (uint16_t)(cmph.names + 1); /* as another process left them */
    cmph_publish(16, (uint32_t)getpid());
    pthread_atfork(NULL, NULL, cmph_forget);
    __atomic_store_n(&cmph.listener, CMPH_LISTENS, __ATOMIC_RELEASE);
}

/* Take the lock, if anybody listens; the first call opens the file. */
static inline int cmph_enter(void)
{
    int listener = __atomic_load_n(&cmph.listener, __ATOMIC_ACQUIRE);
    if (listener == CMPH_NOBODY)
        return 0;
    pthread_mutex_lock(&cmph.lock);
    if (cmph.listener == CMPH_UNKNOWN)
        cmph_open();
    if (cmph.listener == CMPH_LISTENS)
        return 1;
    pthread_mutex_unlock(&cmph.lock);
    return 0;
}

static inline void cmph_leave(void) { pthread_mutex_unlock(&cmph.lock); }

/* Write a record, and publish it. Under the lock. */
static inline void cmph_write(const castmates_range *one, uint64_t end)
{
    const int64_t nothing = -1;
    unsigned char *record = cmph.memory + CMPH_RECORDS + (size_t)cmph.record * (cmph.head & cmph.last_slot);
    if (one->name < 0) {
        cmph_count(40, 1);
        return;
    }
    const uint32_t rest[8] = {(uint32_t)one->name, (uint32_t)one->type | (one->cut ? 256u : 0u),
                              one->thread,         cmph_self(),
                              one->length,         0,
                              0,                   0};
    /* The last head must be seen before this slot changes: that is how a reader notices an overwrite. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(record, &one->begin, 8);
    memcpy(record + 8, &end, 8);
    memcpy(record + 16, &one->step, 8);
    memcpy(record + 24, &one->epoch, 8);
    memcpy(record + 32, rest, sizeof rest);
    for (uint32_t count = 0; count < cmph.counters; count++)
        memcpy(record + CMPH_PLAIN + 8 * count, &nothing, 8);
    if (one->length > 0)
        memcpy(record + CMPH_PLAIN + 8 * cmph.counters, one->payload, one->length);
    __atomic_store_n((uint64_t *)(void *)(cmph.memory + 24), ++cmph.head, __ATOMIC_RELEASE);
}

/* Fill in a record that begins now; its time is read last. Under the lock. */
static inline void cmph_begin(castmates_range *one, int type, int32_t name, int64_t step, const char *payload)
{
    const size_t length = payload == NULL || !cmph.ranges ? 0 : strlen(payload);
    one->type = type;
    one->open = 1;
    one->name = name;
    one->step = step < 0 ? -1 : step;
    one->epoch = cmph.epoch;
    one->before = cmph.epoch;
    one->thread = cmph_self();
    one->cut = length > CMPH_PAYLOAD;
    one->length = one->cut ? 0 : (uint32_t)length;
    if (one->length > 0)
        memcpy(one->payload, payload, length);
    if (one->cut) {
        cmph_count(56, 1);
        cmph_say(CMPH_SAID_PAYLOAD, "A payload of more than 64 bytes is left out", payload);
    }
    one->begin = cmph_now();
}

/* The frame of this thread that was begun last in a domain; NULL for none. */
static inline cmph_frame *cmph_inner(int domain)
{
    for (int place = cmph_own.depth - 1; place >= 0; place--)
        if (cmph_own.frames[place].domain == domain)
            return &cmph_own.frames[place];
    return NULL;
}

/* What lies around a phase that begins now. Under the lock. */
static inline const char *cmph_around(const cmph_frame *outer, int domain, int type)
{
    if (outer != NULL)
        return outer->range.name < 0 ? "" : (const char *)cmph_slot((uint32_t)outer->range.name) + CMPH_TEXT;
    if (type != CMPH_PHASE || domain != 0)
        return "";
    if (cmph.first_thread == 0)
        cmph.first_thread = cmph_self();
    return cmph.first_thread == cmph_self() ? "" : "threads";
}

static inline void cmph_phase(const char *domain, const char *name, int64_t step, const char *payload, int marked)
{
    if (!cmph_enter())
        return;
    if (cmph.ranges || domain == NULL || *domain == '\0') {
        const int number = cmph_domain(domain);
        const cmph_frame *outer = cmph_inner(number);
        const char *around = cmph_around(outer, number, CMPH_PHASE);
        const int lost = outer != NULL && outer->range.name < 0;
        const int32_t known = lost ? -1 : cmph_named(CMPH_PHASE, number, around, name);
        if (cmph_own.depth < CMPH_DEEP) {
            cmph_frame *frame = &cmph_own.frames[cmph_own.depth++];
            frame->domain = number;
            frame->marked = marked;
            cmph_begin(&frame->range, CMPH_PHASE, known, step < 0 && outer != NULL ? outer->range.step : step, payload);
        } else {
            cmph_own.beyond++;
            cmph_count(40, 1);
            cmph_say(CMPH_SAID_NAME, "Phases lie in each other 64 deep at most, and this one is deeper", name);
        }
    }
    cmph_leave();
}

/* Take a frame off this thread's stack, and write it. Under the lock. */
static inline void cmph_pop(cmph_frame *frame, uint64_t now)
{
    const size_t behind = (size_t)(&cmph_own.frames[cmph_own.depth] - (frame + 1));
    cmph_write(&frame->range, now);
    memmove(frame, frame + 1, behind * sizeof *frame);
    cmph_own.depth--;
}

/* End the phase that was begun last in a domain and this thread, and marked ones inside it. */
static inline void castmates_phase_end_in(const char *domain)
{
    const uint64_t now = cmph_now();
    if (!cmph_enter())
        return;
    if (cmph_own.beyond > 0) {
        cmph_own.beyond--;
    } else if (cmph.ranges || domain == NULL || *domain == '\0') {
        const int number = cmph_domain_known(domain);
        for (cmph_frame *frame = cmph_inner(number); frame != NULL; frame = cmph_inner(number)) {
            const int marked = frame->marked;
            cmph_pop(frame, now);
            if (!marked)
                break;
        }
    }
    cmph_leave();
}

static inline void castmates_phase_begin_in(const char *domain, const char *name, int64_t step, const char *payload)
{
    cmph_phase(domain, name, step, payload, 0);
}

static inline void castmates_phase_begin(const char *name, int64_t step) { cmph_phase(NULL, name, step, NULL, 0); }
static inline void castmates_phase_end(void) { castmates_phase_end_in(NULL); }

/* Begin a phase that lasts until the next mark, or until the phase around it ends; NULL just ends it. */
static inline void castmates_mark(const char *name, int64_t step)
{
    const uint64_t now = cmph_now();
    if (!cmph_enter())
        return;
    cmph_frame *frame = cmph_inner(0);
    if (frame != NULL && frame->marked)
        cmph_pop(frame, now);
    cmph_leave();
    if (name != NULL)
        cmph_phase(NULL, name, step, NULL, 1);
}

static inline castmates_range cmph_open_range(int type, const char *domain, const char *name, int64_t step,
                                              const char *payload)
{
    castmates_range one;
    memset(&one, 0, sizeof one);
    if (!cmph_enter())
        return one;
    if (cmph.ranges) {
        cmph_count(48, 1);
        cmph_begin(&one, type, cmph_named(type, cmph_domain(domain), "", name), type == CMPH_EPOCH ? -1 : step, payload);
        if (type == CMPH_EPOCH)
            one.epoch = cmph.epoch = step < 0 ? -1 : step;
    }
    cmph_leave();
    return one;
}

/* Begin a range that any thread may end; it lies in no phase, and none lies in it. */
static inline castmates_range castmates_range_start(const char *domain, const char *name, int64_t step,
                                                    const char *payload)
{
    return cmph_open_range(CMPH_RANGE, domain, name, step, payload);
}

/* Begin an epoch, which lasts until castmates_range_end: what begins meanwhile is part of it. */
static inline castmates_range castmates_epoch_begin(int64_t number)
{
    return cmph_open_range(CMPH_EPOCH, NULL, "epoch", number, NULL);
}

/* End a range or an epoch. */
static inline void castmates_range_end(castmates_range *one)
{
    const uint64_t now = cmph_now();
    if (one == NULL || !cmph_enter())
        return;
    if (cmph.ranges && one->open) {
        one->open = 0;
        cmph_count(48, -1);
        if (one->type == CMPH_EPOCH)
            cmph.epoch = one->before;
        cmph_write(one, now);
    } else if (cmph.ranges) {
        cmph_say(CMPH_SAID_END, "A range was ended that has ended already, or never begun", "castmates_range_end");
    }
    cmph_leave();
}

/* Report that something happens at this moment, inside the phase of the domain that this thread is in. */
static inline void castmates_instant(const char *domain, const char *name, int64_t step, const char *payload)
{
    castmates_range one;
    memset(&one, 0, sizeof one);
    if (!cmph_enter())
        return;
    if (cmph.ranges) {
        const int number = cmph_domain(domain);
        const cmph_frame *outer = cmph_inner(number);
        const int lost = outer != NULL && outer->range.name < 0;
        const int32_t known =
            lost ? -1 : cmph_named(CMPH_INSTANT, number, cmph_around(outer, number, CMPH_INSTANT), name);
        cmph_begin(&one, CMPH_INSTANT, known, step < 0 && outer != NULL ? outer->range.step : step, payload);
        cmph_write(&one, one.begin);
    }
    cmph_leave();
}

#endif
