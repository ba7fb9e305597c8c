/* Stops the lead for the share of the time that its neighbour costs: no member, and never frozen. */
#include <sys/prctl.h>

#include "program.h"

#define PERIOD_NS 10000000

static void tax_sleep(uint64_t ns)
{
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

int main(void)
{
    volatile struct tax_page *page = tax_page();
    double owed_ns = 0;
    uint64_t last = tax_ns(CLOCK_MONOTONIC);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1000);
    cm_stop_on_signals();
    while (!cm_stopped) {
        tax_sleep(PERIOD_NS);
        uint64_t now = tax_ns(CLOCK_MONOTONIC);
        double loss = tax_asked(page);
        owed_ns = loss > 0 ? owed_ns + (double)(now - last) * loss : 0;
        last = now;
        pid_t lead = (pid_t)page->lead_pid;
        if (owed_ns > 30000 && lead > 0 && kill(lead, SIGSTOP) == 0) {
            uint64_t begin = tax_ns(CLOCK_MONOTONIC);
            tax_sleep((uint64_t)owed_ns);
            kill(lead, SIGCONT);
            uint64_t took = tax_ns(CLOCK_MONOTONIC) - begin;
            owed_ns -= (double)took;
            page->paid_ns += took;
        }
    }
}
