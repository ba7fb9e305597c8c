/* A loss that is known: what stands beside a lead says how much, and the lead pays it by extra work or is stopped.

   -include'd into a kernel, as TRUTH_LEAD or TRUTH_NEIGHBOUR. The page is shared by all (castmates/trials/known_losses.py makes it). */
#ifndef CASTMATES_TRUTH_H
#define CASTMATES_TRUTH_H

#define _GNU_SOURCE
#include "heartbeat.h"

struct truth_page {
    uint64_t seen_ns;  /* when the neighbour ran last: CLOCK_MONOTONIC */
    double loss;       /* that it causes, as a share of the lead's rate */
    uint64_t lead_pid;
    uint64_t paid_ns;  /* extra work, or time that the lead was stopped */
    uint64_t stopped;  /* by a third process: the lead does no extra work */
};

#define TRUTH_FRESH_NS 4000000u /* a neighbour that was not seen for so long is frozen */

static volatile struct truth_page *truth_page;

static inline volatile struct truth_page *truth_open(void)
{
    if (truth_page == NULL) {
        int fd = open(getenv("CASTMATES_TRUTH"), O_RDWR | O_CLOEXEC);
        void *memory = mmap(NULL, sizeof *truth_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (fd < 0 || memory == MAP_FAILED) {
            perror("CASTMATES_TRUTH");
            exit(2);
        }
        close(fd);
        truth_page = memory;
    }
    return truth_page;
}

static inline uint64_t truth_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The loss that is in force now. */
static inline double truth_loss(void)
{
    volatile struct truth_page *page = truth_open();
    return truth_ns(CLOCK_MONOTONIC) - page->seen_ns < TRUTH_FRESH_NS ? page->loss : 0;
}

/* The lead, before each beat: extra work in proportion to the CPU time since the last one. */
static inline void truth_pay(void)
{
    static uint64_t paid_until;
    static double owed_ns;
    volatile struct truth_page *page = truth_open();
    uint64_t now = truth_ns(CLOCK_PROCESS_CPUTIME_ID);
    double loss = truth_loss();
    page->lead_pid = (uint64_t)getpid();
    if (paid_until != 0 && !page->stopped)
        owed_ns += (double)(now - paid_until) * loss / (1 - loss);
    uint64_t begin = now;
    while ((double)(now - begin) < owed_ns)
        now = truth_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (owed_ns > 0) { /* what was paid too much is paid less next time */
        owed_ns -= (double)(now - begin);
        page->paid_ns += now - begin;
    }
    paid_until = now;
}

/* The neighbour, with each beat: it runs, and this is what it costs. */
static inline void truth_seen(void)
{
    static double loss = -1;
    volatile struct truth_page *page = truth_open();
    if (loss < 0)
        loss = strtod(getenv("CASTMATES_TRUTH_LOSS"), NULL);
    page->loss = loss;
    page->seen_ns = truth_ns(CLOCK_MONOTONIC);
}

#ifdef TRUTH_LEAD
#define cm_beat(hb, units) (truth_pay(), cm_beat(hb, units))
#endif
#ifdef TRUTH_NEIGHBOUR
#define cm_beat(hb, units) (truth_seen(), cm_beat(hb, units))
#endif
#endif
