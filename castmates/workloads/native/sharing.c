/* sharing: threads that count under one lock, in one line, in one word, or in a word that lies in two lines. */
#include "kernel.h"

#if defined(__x86_64__)
#define SHARING_CAN_SPLIT 1
#else
#define SHARING_CAN_SPLIT 0
#endif

/* What the threads share, each part in its own lines. */
static struct {
    pthread_mutex_t lock;
    uint64_t locked; /* the counter that the lock guards, in its line */
    _Alignas(2 * CM_LINE) uint64_t common;
    _Alignas(2 * CM_LINE) unsigned char split[2 * CM_LINE]; /* a word of it, across its lines */
    _Alignas(2 * CM_LINE) uint64_t own[CM_MOST_THREADS];
} sharing_all = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct sharing {
    struct sharing *others; /* threads that were prepared before */
    uint64_t *own;          /* its counter in a line of several threads' counters */
    uint64_t done;
    char mode;              /* the first letter of --mode */
};

static struct sharing *sharing_threads;

/* Where the system kills who locks a word in two lines (split_lock_detect=fatal), report it at least. */
static void sharing_is_forbidden(int signal_number)
{
    static const char said[] = "sharing: ended by SIGBUS: this system forbids locked words that lie in two lines "
                               "(split_lock_detect=fatal); start it with split_lock_detect=off, or take another mode\n";
    ssize_t written = write(STDERR_FILENO, said, sizeof said - 1);
    (void)signal_number;
    (void)written; /* there is no one else to report to */
    _exit(1);
}

static void *sharing_prepare(const cm_options *options, unsigned thread)
{
    struct sharing *s = cm_state(sizeof *s);
    if (s == NULL)
        return NULL;
    if (!SHARING_CAN_SPLIT && options->mode[0] == 's') {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (options->mode[0] == 's')
        sigaction(SIGBUS, &(struct sigaction){.sa_handler = sharing_is_forbidden}, NULL);
    *s = (struct sharing){sharing_threads, &sharing_all.own[thread], 0, options->mode[0]};
    sharing_threads = s;
    return s;
}

/* The compiler's own atomics must not be used on this address: where processors can do it, they stop all others. */
static void sharing_count_split(uint64_t *word)
{
#if SHARING_CAN_SPLIT
    __asm__ volatile("lock; incq %0" : "+m"(*word));
#else
    (void)word;
#endif
}

static void sharing_work(void *state, uint64_t units)
{
    struct sharing *s = state;
    for (uint64_t i = 0; i < units; i++) {
        __asm__ volatile("" : : : "memory"); /* each increment by itself: several must not become one */
        if (s->mode == 't') {
            __atomic_fetch_add(&sharing_all.common, 1, __ATOMIC_RELAXED);
        } else if (s->mode == 'f') {
            __atomic_store_n(s->own, __atomic_load_n(s->own, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
        } else if (s->mode == 's') {
            sharing_count_split((uint64_t *)(sharing_all.split + CM_LINE - 4));
        } else {
            pthread_mutex_lock(&sharing_all.lock);
            sharing_all.locked++;
            pthread_mutex_unlock(&sharing_all.lock);
        }
    }
    s->done += units;
}

static void sharing_restart(void *state) { (void)state; }

/* All threads have ended: what they counted together is what each of them knows to have done. */
static const char *sharing_verify(void *state)
{
    const struct sharing *s = state;
    uint64_t done = 0, counted;
    memcpy(&counted, sharing_all.split + CM_LINE - 4, sizeof counted);
    counted += sharing_all.locked + sharing_all.common;
    for (const struct sharing *one = sharing_threads; one != NULL; one = one->others) {
        done += one->done;
        counted += *one->own;
    }
    if (s->mode == 'f' && *s->own != s->done)
        return "a thread's counter is not what it counted";
    return counted == done ? NULL : "the counter of all threads is not the sum of what they counted";
}

static const char *const sharing_modes[] = {"lock", "false", "true", "split", NULL};

static const cm_kernel sharing_kernel = {
    .name = "sharing",
    .does = "Threads that count: each under the same lock (lock), in words of the same cache line (false), atomically "
            "in the same word (true), or atomically in a word that lies in two lines (split): traffic of the caches' "
            "coherence; split stops the memory accesses of all cores each time.",
    .unit = "one increment",
    .takes = CM_RATE | CM_THREADS | CM_MODE,
    .defaults = {.threads = 2},
    .modes = sharing_modes,
    .step = 1,
    .prepare = sharing_prepare,
    .work = sharing_work,
    .restart = sharing_restart,
    .verify = sharing_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&sharing_kernel, argc, argv); }
#endif
