/* A loss that is known: who runs beside a lead asks for a share of its rate, and the lead pays it by extra work.

   Included before all else, or -include'd, as TAX_LEAD or TAX_NEIGHBOUR; each beat then pays, or asks. Both share the
   page that CASTMATES_TAX names; without one nothing is paid. */
#ifndef CASTMATES_TAX_H
#define CASTMATES_TAX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "heartbeat.h"

struct tax_page {
    uint64_t asked_ns; /* when the neighbour ran last: CLOCK_MONOTONIC */
    double loss;       /* that it asks for, as a share of the lead's rate */
    uint64_t lead_pid;
    uint64_t paid_ns; /* extra work, or time that the lead was stopped */
    uint64_t stopped; /* by a third process: the lead does no extra work */
};

#define TAX_FRESH_NS 4000000 /* a neighbour that has not asked for so long is frozen */

/* NULL where none is named; the first to come makes it. */
static inline volatile struct tax_page *tax_page(void)
{
    static volatile struct tax_page *page;
    const char *path = getenv("CASTMATES_TAX");
    if (page != NULL || path == NULL)
        return page;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof *page) == 0)
        memory = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "Cannot share %s, which CASTMATES_TAX names: %s.\n", path, strerror(errno));
        exit(2);
    }
    close(fd);
    return page = memory;
}

static inline uint64_t tax_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The share that is asked for now. */
static inline double tax_asked(volatile struct tax_page *page)
{
    return (int64_t)(tax_ns(CLOCK_MONOTONIC) - page->asked_ns) < TAX_FRESH_NS ? page->loss : 0;
}

/* The lead, before each beat: extra work in proportion to the CPU time since the last one. */
static inline void tax_pay(void)
{
    static uint64_t paid_until;
    static double owed_ns;
    volatile struct tax_page *page = tax_page();
    if (page == NULL)
        return;
    double loss = tax_asked(page);
    page->lead_pid = (uint64_t)getpid();
    /* Last: what is done at every beat is not counted as paid. */
    uint64_t now = tax_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (paid_until != 0 && !page->stopped)
        owed_ns += (double)(now - paid_until) * loss / (1 - loss);
    uint64_t begin = now;
    while ((double)(now - begin) < owed_ns)
        now = tax_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (owed_ns > 0) { /* what was paid too much is paid less next time */
        owed_ns -= (double)(now - begin);
        page->paid_ns += now - begin;
    }
    paid_until = now;
}

/* The neighbour, with each beat. */
static inline void tax_ask(double loss)
{
    volatile struct tax_page *page = tax_page();
    if (page != NULL) {
        page->loss = loss;
        page->asked_ns = tax_ns(CLOCK_MONOTONIC);
    }
}

#ifdef TAX_LEAD
#define cm_beat(hb, units) (tax_pay(), cm_beat(hb, units))
#endif
#ifdef TAX_NEIGHBOUR
#define cm_beat(hb, units) (tax_ask(strtod(getenv("CASTMATES_TAX_LOSS"), NULL)), cm_beat(hb, units))
#endif
#endif
