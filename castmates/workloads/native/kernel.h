/* The endless kernels: a kernel is a table (cm_kernel in options.h), and `cm_main` makes a program of it.

   int main(int argc, char **argv) { return cm_main(&kernel, argc, argv); }

   This header comes first in a kernel's source, because it asks the system's headers for all they have. Helpers:
   cm_share (options.h), cm_allocate, cm_state, cm_random (memory.h), cm_now (heartbeat.h), cm_relax (pace.h). */
#ifndef CASTMATES_KERNEL_H
#define CASTMATES_KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets */
#endif

#include "crew.h"
#include "memory.h"
#include "options.h"
#include "pace.h"
#include "program.h"

#define CM_HELD_ENOUGH 0.98 /* of the wanted rate; less than that is reported */

/* Report what could not be had. */
static inline int cm_cannot_prepare(const cm_crew *crew)
{
    const cm_kernel *kernel = crew->kernel;
    const cm_options *options = crew->options;
    const char *why = strerror(crew->error);
    unsigned long long bytes = options->bytes;
    if (kernel->takes & CM_DIRECTORY)
        fprintf(stderr, "%s: cannot have %llu bytes of files in %s: %s\n", kernel->name, bytes, options->directory,
                why);
    else if (kernel->takes & CM_BYTES)
        fprintf(stderr, "%s: cannot have %llu bytes of memory: %s\n", kernel->name, bytes, why);
    else
        fprintf(stderr, "%s: cannot be prepared: %s\n", kernel->name, why);
    return 1;
}

/* Report where the wanted rate was not held. */
static inline void cm_report_rate(const cm_crew *crew)
{
    const cm_options *options = crew->options;
    double held = 0, bytes = (double)cm_bytes_per_unit(crew->kernel);
    for (unsigned i = 0; i < options->threads; i++)
        held += crew->workers[i]->held;
    if (options->rate == 0 || held >= CM_HELD_ENOUGH * options->rate)
        return;
    fprintf(stderr, "%s: wanted %.6g units a second, held %.6g", crew->kernel->name, options->rate, held);
    if (bytes > 0)
        fprintf(stderr, " (%.4g and %.4g GB/s)", options->rate * bytes / 1e9, held * bytes / 1e9);
    fputc('\n', stderr);
}

/* Ask every thread's state for its verdict, and let it clean up; the exit status. */
static inline int cm_verdict(const cm_crew *crew)
{
    const cm_kernel *kernel = crew->kernel;
    int status = 0;
    for (unsigned i = 0; i < crew->options->threads; i++) {
        void *state = crew->workers[i]->state;
        const char *wrong = crew->error == 0 && status == 0 ? kernel->verify(state) : NULL;
        if (wrong != NULL) {
            fprintf(stderr, "%s: the result is wrong: %s\n", kernel->name, wrong);
            status = 3;
        }
        if (state != NULL && kernel->end != NULL)
            kernel->end(state);
    }
    return status;
}

static inline int cm_main(const cm_kernel *kernel, int argc, char **argv)
{
    cm_options options = cm_parse(kernel, argc, argv);
    cm_crew crew = {.kernel = kernel, .options = &options, .hb = cm_heartbeat_or_exit()};
    cm_stop_on_signals();
    int error = cm_run_crew(&crew), status;
    if (error != 0) {
        fprintf(stderr, "%s: cannot start %u threads: %s\n", kernel->name, options.threads, strerror(error));
        status = 1;
    } else if (crew.error != 0) {
        cm_verdict(&crew);
        status = cm_cannot_prepare(&crew);
    } else {
        cm_report_rate(&crew);
        status = cm_verdict(&crew);
    }
    if (status == 0)
        cm_finished(crew.hb);
    else
        cm_failed(crew.hb);
    return status;
}

#endif
