/* barriers: BenchCast's two functions, which beat here and wait for nobody: each iteration of a region of interest is a unit.

   A program that was patched for BenchCast calls initialize_barrier before the loop of its region of interest and
   call_barrier in each iteration (Fortran: the same with a `_`). It takes part in one of two ways:
   - as it was built, with this file preloaded as a library. BenchCast's own functions open shared memory by a fixed name
     and wait at the barrier in it; the memory that they are given here has a mark in place of the barrier.
   - compiled with this file in place of barrier_cast.c, where nothing can be preloaded (a static program).

   A call comes at the beginning of an iteration: between two of them lies the work of one. The heartbeat has a variable of
   its own: the keeper that runs the program again and again has none, and the count goes on over all runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, memfd_create */
#endif
#include "heartbeat.h"

int initialize_barrier(void);
int initialize_barrier_(void);
void call_barrier(void);
void call_barrier_(void);

#define CM_BARRIERS_VARIABLE "CASTMATES_BARRIERS"

static cm_heartbeat *opened(void)
{
    static cm_heartbeat handle;
    const char *path = getenv(CM_BARRIERS_VARIABLE);
    handle.file = path == NULL || *path == '\0' ? NULL : cm_heartbeat_map(path);
    if (handle.file == NULL)
        return NULL;
    handle.last_slot = handle.file->capacity - 1;
    handle.head = handle.file->head;
    handle.units = handle.head == 0 ? 0 : handle.file->records[(handle.head - 1) & handle.last_slot].units;
    __atomic_store_n(&handle.file->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
    return &handle;
}

/* The first one also says that the program is ready. Threads that come together take turns. */
static void beat(void)
{
    static char busy, known;
    static cm_heartbeat *hb;
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        continue;
    if (!known) {
        known = 1;
        hb = opened();
        cm_ready(hb);
    }
    cm_beat(hb, 1);
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

int initialize_barrier(void) { return 0; }
int initialize_barrier_(void) { return 0; }
void call_barrier(void) { beat(); }
void call_barrier_(void) { beat(); }

#ifdef CM_PRELOADED
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define BENCHCASTS_NAME "tmp_pthread_barrierattr_getpshared"

/* What BenchCast's functions expect under that name: they wait as long as `waits` is set. */
static const struct {
    union {
        char mark[32];
        pthread_barrier_t barrier;
    };
    bool waits;
} shared = {{"Castmates beats here"}, true};

static int made(void)
{
    int fd = memfd_create(BENCHCASTS_NAME, 0);
    if (fd >= 0 && write(fd, &shared, sizeof shared) != (ssize_t)sizeof shared) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int shm_open(const char *name, int flags, mode_t mode)
{
    if (strcmp(name, BENCHCASTS_NAME) == 0)
        return made();
    int (*next)(const char *, int, mode_t) = (int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, "shm_open");
    if (next != NULL)
        return next(name, flags, mode);
    errno = ENOSYS;
    return -1;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    static int (*next)(pthread_barrier_t *);
    if (memcmp(barrier, &shared, sizeof shared.mark) == 0) {
        beat();
        return 0;
    }
    if (next == NULL)
        next = (int (*)(pthread_barrier_t *))dlsym(RTLD_NEXT, "pthread_barrier_wait");
    return next(barrier);
}
#endif
