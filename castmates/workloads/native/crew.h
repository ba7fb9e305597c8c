/* The threads of a kernel: each prepares its own state on its own CPU; the first one beats for all of them. */
#ifndef CASTMATES_CREW_H
#define CASTMATES_CREW_H

#include <pthread.h>
#include <sched.h>

#include "memory.h"
#include "pace.h"

struct cm_crew;

typedef struct {
    struct cm_crew *crew;
    unsigned number;
    pthread_t id;
    void *state;
    cm_pace pace;
    uint64_t told; /* units, to be read by the first thread; these of the first thread are not used */
    double held;
} cm_worker;

typedef struct cm_crew {
    const cm_kernel *kernel;
    const cm_options *options;
    cm_heartbeat *hb;
    cm_worker **workers;
    pthread_barrier_t barrier;
    unsigned turn;  /* whose turn it is to prepare */
    int error;      /* the errno for which a thread could not prepare */
    uint64_t chunk; /* in units */
    uint64_t left;  /* units that no thread has taken yet, where there is an end */
    uint64_t beaten; /* units of all other threads that were in a beat */
} cm_crew;

/* Put the i-th thread on the i-th CPU that we may use; alone, it may use them all. */
static inline void cm_pin(unsigned number)
{
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return; /* more CPUs than the set has room for: the threads stay unpinned */
    int count = CPU_COUNT(&allowed), at = (int)number % count;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && at-- == 0) {
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof own, &own);
            return;
        }
    }
}

/* Prepare when it is our turn. */
static inline void cm_prepare_in_turn(cm_worker *worker)
{
    cm_crew *crew = worker->crew;
    const struct timespec nap = {0, 50000};
    while (__atomic_load_n(&crew->turn, __ATOMIC_ACQUIRE) != worker->number)
        nanosleep(&nap, NULL);
    if (crew->error == 0) {
        errno = 0;
        worker->state = crew->kernel->prepare(crew->options, worker->number);
        if (worker->state == NULL)
            crew->error = errno != 0 ? errno : ENOMEM;
    }
    __atomic_store_n(&crew->turn, worker->number + 1, __ATOMIC_RELEASE);
}

static inline double cm_share_of_rate(const cm_crew *crew) { return crew->options->rate / crew->options->threads; }

/* Take up to a chunk of what is left to do. */
static inline uint64_t cm_claim(cm_crew *crew)
{
    if (crew->options->units == 0)
        return crew->chunk;
    uint64_t left = __atomic_load_n(&crew->left, __ATOMIC_RELAXED), mine;
    do
        mine = left < crew->chunk ? left : crew->chunk;
    while (!__atomic_compare_exchange_n(&crew->left, &left, left - mine, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return mine;
}

/* The first thread beats what all have done; the others report to it. */
static inline void cm_tell(cm_worker *worker, uint64_t units)
{
    cm_crew *crew = worker->crew;
    if (worker->number != 0) {
        __atomic_fetch_add(&worker->told, units, __ATOMIC_RELEASE);
        return;
    }
    uint64_t others = 0;
    for (unsigned i = 1; i < crew->options->threads; i++)
        others += __atomic_load_n(&crew->workers[i]->told, __ATOMIC_ACQUIRE);
    if (units + others > crew->beaten)
        cm_beat(crew->hb, units + others - crew->beaten);
    crew->beaten = others;
}

/* Work as fast as it can, until SIGTERM or until all is done. */
static inline void cm_work_freely(cm_worker *worker)
{
    cm_crew *crew = worker->crew;
    uint64_t units;
    while (!cm_stopped && (units = cm_claim(crew)) > 0) {
        crew->kernel->work(worker->state, units);
        cm_tell(worker, units);
    }
}

/* Work at the wanted rate, until SIGTERM or until all is done. */
static inline void cm_work_paced(cm_worker *worker)
{
    cm_crew *crew = worker->crew;
    cm_pace *pace = &worker->pace;
    uint64_t units, untold = 0;
    *pace = cm_start_pace(cm_share_of_rate(crew), crew->chunk);
    uint64_t now = pace->began, told = pace->began;
    while (!cm_stopped && (units = cm_claim(crew)) > 0) {
        crew->kernel->work(worker->state, units);
        pace->done += units;
        untold += units;
        now = cm_wait_until_due(pace);
        if (now - told >= CM_BEAT_NS) {
            cm_tell(worker, untold);
            untold = 0;
            told = now;
        }
    }
    if (untold > 0)
        cm_tell(worker, untold);
    worker->held = cm_held(pace);
}

/* The life of one thread, from its memory to its last unit. */
static inline void *cm_live(void *argument)
{
    cm_worker *worker = argument;
    cm_crew *crew = worker->crew;
    int paced = crew->options->rate > 0;
    if (crew->options->threads > 1)
        cm_pin(worker->number);
    cm_prepare_in_turn(worker);
    pthread_barrier_wait(&crew->barrier);
    if (crew->error != 0)
        return NULL;
    if (worker->number == 0)
        cm_check_pages(crew->kernel->name);
    uint64_t chunk = cm_size_chunk(crew->kernel, worker->state, paced ? CM_PACED_CHUNK_NS : CM_SHORT_CHUNK_NS);
    if (worker->number == 0)
        crew->chunk = paced ? cm_paced_chunk(crew->kernel, chunk, cm_share_of_rate(crew)) : chunk;
    pthread_barrier_wait(&crew->barrier);
    crew->kernel->restart(worker->state);
    pthread_barrier_wait(&crew->barrier);
    if (worker->number == 0)
        cm_ready(crew->hb);
    if (paced)
        cm_work_paced(worker);
    else
        cm_work_freely(worker);
    return NULL;
}

/* Let all threads live; 0, or the errno where there are none. */
static inline int cm_run_crew(cm_crew *crew)
{
    unsigned threads = crew->options->threads;
    uint64_t step = crew->kernel->step;
    crew->left = (crew->options->units + step - 1) / step * step;
    crew->workers = calloc(threads, sizeof *crew->workers);
    if (crew->workers == NULL || pthread_barrier_init(&crew->barrier, NULL, threads) != 0)
        return ENOMEM;
    for (unsigned i = 0; i < threads; i++) {
        cm_worker *worker = crew->workers[i] = cm_state(sizeof *worker);
        if (worker == NULL)
            return ENOMEM;
        *worker = (cm_worker){.crew = crew, .number = i};
    }
    for (unsigned i = 1; i < threads; i++) {
        int error = pthread_create(&crew->workers[i]->id, NULL, cm_live, crew->workers[i]);
        if (error != 0)
            return error;
    }
    cm_live(crew->workers[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(crew->workers[i]->id, NULL);
    if (crew->error == 0)
        cm_tell(crew->workers[0], 0); /* what the others did after our last beat */
    return 0;
}

#endif
