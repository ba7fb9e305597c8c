/* What the endless kernels share: options, memory, the size of a chunk, and the loop from ready to the verdict. */
#ifndef CASTMATES_KERNEL_H
#define CASTMATES_KERNEL_H

#include <getopt.h>
#include <signal.h>

#include "heartbeat.h"

#define CM_WARM_UP_NS 50000000u   /* before a chunk is sized, so that caches and clock are at work */
#define CM_SHORT_CHUNK_NS 500000u /* a chunk lasts from this to twice this when nothing disturbs it */

typedef struct {
    const char *name;
    const char *help;
    uint64_t default_bytes; /* 0: takes no --bytes */
    uint64_t step;          /* the smallest piece of work, in units; others are multiples of it */
    void *(*prepare)(uint64_t bytes);          /* allocates and first-touches; NULL: no memory */
    void (*work)(void *state, uint64_t units); /* one chunk */
    void (*restart)(void *state);              /* forgets the work done while the chunk was sized */
    const char *(*verify)(void *state);        /* NULL, or what is wrong with the result */
} cm_kernel;

typedef struct {
    uint64_t bytes;
    uint64_t units; /* 0: for ever */
} cm_options;

static volatile sig_atomic_t cm_stopped;

static inline void cm_stop(int signal_number)
{
    (void)signal_number;
    cm_stopped = 1;
}

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

static inline cm_options cm_parse(const cm_kernel *kernel, int argc, char **argv)
{
    static const struct option with_bytes[] = {{"help", no_argument, NULL, 'h'},
                                               {"units", required_argument, NULL, 'u'},
                                               {"bytes", required_argument, NULL, 'b'},
                                               {NULL, 0, NULL, 0}};
    static const struct option without_bytes[] = {
        {"help", no_argument, NULL, 'h'}, {"units", required_argument, NULL, 'u'}, {NULL, 0, NULL, 0}};
    cm_options options = {kernel->default_bytes, 0};
    int option;
    while ((option = getopt_long(argc, argv, "", kernel->default_bytes ? with_bytes : without_bytes, NULL)) != -1) {
        if (option == 'h') {
            fputs(kernel->help, stdout);
            exit(0);
        } else if (option == 'u') {
            options.units = cm_number_or_exit(kernel->name, "units", optarg, 1);
        } else if (option == 'b') {
            options.bytes = cm_number_or_exit(kernel->name, "bytes", optarg, 4096);
        } else {
            exit(2); /* getopt_long has said why */
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: '%s' is not an option; see %s --help\n", kernel->name, argv[optind], kernel->name);
        exit(2);
    }
    return options;
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

static inline void *cm_allocate(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline uint64_t cm_best_time(const cm_kernel *kernel, void *state, uint64_t units)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5 && !cm_stopped; i++) {
        uint64_t begin = cm_now();
        kernel->work(state, units);
        uint64_t took = cm_now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

/* Choose, once per launch, how many units make a chunk. */
static inline uint64_t cm_size_chunk(const cm_kernel *kernel, void *state)
{
    uint64_t units = kernel->step;
    for (uint64_t begin = cm_now(), end = begin + CM_WARM_UP_NS; begin < end && !cm_stopped; begin = cm_now()) {
        kernel->work(state, units);
        if (cm_now() - begin < CM_SHORT_CHUNK_NS / 2)
            units *= 2;
    }
    while (cm_best_time(kernel, state, units) < CM_SHORT_CHUNK_NS)
        units *= 2;
    return units;
}

/* Work until SIGTERM or until enough is done (0: never). */
static inline void cm_work(const cm_kernel *kernel, void *state, cm_heartbeat *hb, uint64_t chunk, uint64_t units)
{
    uint64_t left = units == 0 ? UINT64_MAX : (units + kernel->step - 1) / kernel->step * kernel->step;
    while (!cm_stopped && left > 0) {
        uint64_t now = chunk < left ? chunk : left;
        kernel->work(state, now);
        cm_beat(hb, now);
        if (units != 0)
            left -= now;
    }
}

static inline int cm_main(const cm_kernel *kernel, int argc, char **argv)
{
    cm_options options = cm_parse(kernel, argc, argv);
    cm_heartbeat *hb = cm_heartbeat_or_exit();
    struct sigaction stop = {.sa_handler = cm_stop};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);

    void *state = kernel->prepare(options.bytes);
    if (state == NULL) {
        fprintf(stderr, "%s: cannot have %llu bytes of memory: %s\n", kernel->name,
                (unsigned long long)options.bytes, strerror(errno));
        cm_failed(hb);
        return 1;
    }
    uint64_t chunk = cm_size_chunk(kernel, state);
    kernel->restart(state);
    cm_ready(hb);
    cm_work(kernel, state, hb, chunk, options.units);

    const char *wrong = kernel->verify(state);
    if (wrong != NULL) {
        fprintf(stderr, "%s: the result is wrong: %s\n", kernel->name, wrong);
        cm_failed(hb);
        return 3;
    }
    cm_finished(hb);
    return 0;
}

#endif
