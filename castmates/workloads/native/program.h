/* What every program here needs: numbers from the command line, the heartbeat or an exit, and the end by SIGTERM. */
#ifndef CASTMATES_PROGRAM_H
#define CASTMATES_PROGRAM_H

#include <signal.h>

#include "heartbeat.h"

static volatile sig_atomic_t cm_stopped;

static inline void cm_stop(int signal_number)
{
    (void)signal_number;
    cm_stopped = 1;
}

/* From here on SIGTERM and SIGINT set cm_stopped, and nothing else. */
static inline void cm_stop_on_signals(void)
{
    struct sigaction stop = {.sa_handler = cm_stop};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
}

static inline uint64_t cm_page(void) { return (uint64_t)sysconf(_SC_PAGESIZE); } /* bytes */

/* Read a positive number with an optional K, M or G (1024, 1024^2, 1024^3); 0 when it is none. */
static inline uint64_t cm_parse_number(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift != 0)
        end++;
    if (errno != 0 || *end != '\0' || value > UINT64_MAX >> shift)
        return 0;
    return value << shift;
}

static inline uint64_t cm_number_or_exit(const char *name, const char *option, const char *text, uint64_t least)
{
    uint64_t value = cm_parse_number(text);
    if (value < least || value == 0) {
        fprintf(stderr, "%s: --%s must be a whole number from %llu on, such as 4096 or 64M, but is '%s'\n", name,
                option, (unsigned long long)least, text);
        exit(2);
    }
    return value;
}

/* Read a share in whole per cents, such as 20%; 0 needs no sign. */
static inline unsigned cm_percent_or_exit(const char *name, const char *option, const char *text)
{
    char *end = NULL;
    unsigned long value = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (end == NULL || value > 100 || (strcmp(end, "%") != 0 && strcmp(text, "0") != 0)) {
        fprintf(stderr, "%s: --%s must be a share from 0%% to 100%%, such as 20%%, but is '%s'\n", name, option, text);
        exit(2);
    }
    return (unsigned)value;
}

/* Open the heartbeat; a variable that names no heartbeat file is an error of the caller. */
static inline cm_heartbeat *cm_heartbeat_or_exit(void)
{
    const char *path = getenv(CM_HEARTBEAT_VARIABLE);
    cm_heartbeat *hb = cm_heartbeat_open();
    if (hb == NULL && path != NULL && *path != '\0')
        exit(2);
    return hb;
}

#endif
