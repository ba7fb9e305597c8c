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

#include <pthread.h>
#include <sched.h>

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
    return &handle;
}

/* Who started a process; -1 of one that has ended. */
static pid_t parent_of(pid_t pid)
{
    char path[32], line[256], state;
    pid_t parent = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    const char *rest = fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
    if (rest == NULL || sscanf(rest, ") %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X')
        parent = -1;
    fclose(file);
    return parent;
}

static int descends_from(pid_t ancestor)
{
    for (pid_t pid = getppid(); pid > 0; pid = parent_of(pid))
        if (pid == ancestor)
            return 1;
    return 0;
}

/* One process at a time: ours takes over from one that has ended, or that it descends from. A parent that calls again
   while its child is alive finds the child's claim, so two that call by turns are noticed. */
static int claimed(struct cm_file *file, uint32_t own)
{
    uint32_t owner = __atomic_load_n(&file->pid, __ATOMIC_ACQUIRE);
    while (owner != own) {
        if (owner != 0 && parent_of((pid_t)owner) != -1 && !descends_from((pid_t)owner))
            return 0;
        if (__atomic_compare_exchange_n(&file->pid, &owner, own, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
    }
    return 1;
}

/* Whether the beat was of the one process that calls. What another one wrote before counts. */
static int beaten(cm_heartbeat *hb)
{
    uint32_t own = (uint32_t)getpid(), starting = CM_STARTING;
    if (!claimed(hb->file, own))
        return 0;
    __atomic_compare_exchange_n(&hb->file->state, &starting, CM_READY, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    hb->head = __atomic_load_n(&hb->file->head, __ATOMIC_ACQUIRE);
    hb->units = hb->head == 0 ? 0 : hb->file->records[(hb->head - 1) & hb->last_slot].units;
    cm_beat(hb, 1);
    return __atomic_load_n(&hb->file->pid, __ATOMIC_ACQUIRE) == own; /* nobody took over meanwhile */
}

static char busy;

static void not_busy(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

/* The thread that beats while another one forks is not in the child. */
__attribute__((constructor)) static void free_in_children(void) { pthread_atfork(NULL, NULL, not_busy); }

/* The first one also says that the program is ready. Threads that come together take turns. */
static void beat(void)
{
    static char known;
    static cm_heartbeat *hb;
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        sched_yield();
    if (!known) {
        known = 1;
        hb = opened();
    }
    if (hb != NULL && __atomic_load_n(&hb->file->state, __ATOMIC_ACQUIRE) != CM_FAILED && !beaten(hb)) {
        cm_failed(hb);
        fprintf(stderr, "Processes %d and %u call call_barrier in turns; one process at a time may call it.\n",
                (int)getpid(), (unsigned)hb->file->pid);
    }
    not_busy();
}

int initialize_barrier(void) { return 0; }
int initialize_barrier_(void) { return 0; }
void call_barrier(void) { beat(); }
void call_barrier_(void) { beat(); }

#ifdef CM_PRELOADED
#include <dlfcn.h>
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
