/* The table that describes a kernel, and its command line, which follows from that table. */
#ifndef CASTMATES_OPTIONS_H
#define CASTMATES_OPTIONS_H

#include <getopt.h>

#include "program.h"
#include "sizes.h"

/* The options that a kernel may take; every kernel has --units and --help. */
enum {
    CM_BYTES = 1,
    CM_RATE = 2,
    CM_THREADS = 4,
    CM_PARALLEL = 8,
    CM_WRITES = 16,
    CM_HUGE = 32,
    CM_MODE = 64,
    CM_DIRECTORY = 128
};

#define CM_LEAST_BYTES 4096u /* of each thread */
#define CM_MOST_THREADS 4096u
#define CM_MOST_PARALLEL 64u
#define CM_COLUMNS 100 /* of the help */

typedef struct {
    uint64_t bytes;        /* the working set, all threads together */
    const char *size;      /* the same as it was asked for; NULL: the default */
    uint64_t units;        /* stop after so many, all threads together; 0: for ever */
    double rate;           /* units a second, all threads together, that are held; 0: as fast as it can */
    unsigned threads;      /* 1 unless asked otherwise */
    unsigned parallel;     /* independent chains or streams at a time */
    unsigned writes;       /* per cent of the accesses that write */
    int huge;              /* huge pages, not usual ones */
    const char *mode;      /* one of the kernel's own modes; NULL where it has none */
    const char *directory; /* where files go: TMPDIR unless asked otherwise */
} cm_options;

/* The functions get the state that `prepare` returned; each thread has its own, and works with no other. */
typedef struct {
    const char *name;
    const char *does; /* a sentence or two for --help: what it does and what that stresses */
    const char *unit; /* goes on from "A unit is", so it begins with "one": "one load; bytes/64 of them are a cycle" */
    unsigned takes;   /* of CM_BYTES, CM_RATE, ... */
    cm_options defaults;
    uint64_t least_bytes;     /* the smallest working set of a thread; 0: CM_LEAST_BYTES */
    uint64_t least_pages;     /* the same in pages, where that is more */
    uint64_t bytes_per_unit;  /* so that --rate can be given in bytes a second; 0: it cannot */
    uint64_t pages_per_unit;  /* the same in pages */
    const char *const *modes; /* NULL-terminated, the first is the default; NULL where there are none */
    uint64_t step;            /* the smallest piece of work in units; others are multiples of it */
    void (*check)(const cm_options *options); /* ends with a sentence and status 2 where they do not fit; may be NULL */
    /* Called in the thread itself, which so touches its memory first; one thread after the other, 0 first, so that what
       all share may be made by thread 0 and kept in a static variable. NULL with errno: it cannot be had. */
    void *(*prepare)(const cm_options *options, unsigned thread);
    void (*work)(void *state, uint64_t units); /* one chunk; threads never wait for one another in it */
    void (*restart)(void *state);              /* forgets the work done while the chunk was sized; no thread works */
    const char *(*verify)(void *state);        /* NULL, or what is wrong; called when all threads have ended, in turn */
    void (*end)(void *state);                  /* after the verdict, for what must not be left behind; may be NULL */
} cm_kernel;

/* The part of the working set that is a thread's own: whole lines. */
static inline uint64_t cm_share(const cm_options *options) { return options->bytes / options->threads / 64 * 64; }

static inline uint64_t cm_least_bytes(const cm_kernel *kernel)
{
    uint64_t bytes = kernel->least_bytes > 0 ? kernel->least_bytes : CM_LEAST_BYTES;
    uint64_t pages = kernel->least_pages * cm_page();
    return bytes > pages ? bytes : pages;
}

static inline uint64_t cm_bytes_per_unit(const cm_kernel *kernel)
{
    return kernel->bytes_per_unit + kernel->pages_per_unit * cm_page();
}

/* Print words, in lines that are not too long. */
static inline void cm_wrap(const char *text)
{
    int column = 0;
    while (*text != '\0') {
        int length = (int)strcspn(text, " \n");
        if (column > 0 && column + 1 + length > CM_COLUMNS) {
            putchar('\n');
            column = 0;
        }
        column += printf("%s%.*s", column > 0 ? " " : "", length, text);
        text += length;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

/* A size as a person would write it. */
static inline const char *cm_size_text(uint64_t bytes)
{
    static char text[32];
    int shift = bytes % (1u << 30) == 0 ? 30 : bytes % (1u << 20) == 0 ? 20 : bytes % 1024 == 0 ? 10 : 0;
    snprintf(text, sizeof text, "%llu%.*s", (unsigned long long)(bytes >> shift), shift != 0, &"..KMG"[shift / 10 + 1]);
    return text;
}

static inline void cm_help_modes(const cm_kernel *kernel)
{
    printf("  --mode M       one of");
    for (const char *const *mode = kernel->modes; *mode != NULL; mode++)
        printf("%s %s", mode == kernel->modes ? "" : ",", *mode);
    printf(" (default %s)\n", kernel->modes[0]);
}

/* Print what the table has. */
static inline void cm_help(const cm_kernel *kernel)
{
    const cm_options *defaults = &kernel->defaults;
    unsigned takes = kernel->takes;
    printf("usage: %s [OPTION]...\n\n", kernel->name);
    cm_wrap(kernel->does);
    puts("It goes on until SIGTERM, or until it has done its units, and then verifies its result.\n");
    if (takes & CM_MODE)
        cm_help_modes(kernel);
    if (takes & CM_BYTES)
        printf("  --bytes N      the working set, all threads together: bytes (64M), or a share of the caches that their\n"
               "                 CPUs lie on (0.5llc, 2l2) or ways of the last-level ones (2ways); default %s\n",
               cm_size_text(defaults->bytes));
    if (takes & CM_PARALLEL)
        printf("  --parallel N   independent accesses at a time in each thread, 1 to %u (default %u)\n",
               CM_MOST_PARALLEL, defaults->parallel > 0 ? defaults->parallel : 1);
    if (takes & CM_WRITES)
        printf("  --writes N%%    the share of the accesses that write (default %u%%)\n", defaults->writes);
    if (takes & CM_HUGE)
        printf("  --huge         on huge pages%s\n  --small        on usual pages%s\n",
               defaults->huge ? " (default)" : "", defaults->huge ? "" : " (default)");
    if (takes & CM_THREADS)
        puts("  --threads N    threads, each on a CPU of its own while there are enough (default 1)");
    if (takes & CM_DIRECTORY)
        puts("  --directory D  where its files go (default $TMPDIR, or /tmp)");
    if (takes & CM_RATE)
        printf("  --rate R       hold this rate, all threads together: units a second (20M)%s; default: no limit\n",
               cm_bytes_per_unit(kernel) ? " or bytes a second (5GB/s)" : "");
    puts("  --units N      stop after N units, all threads together, rounded up to whole steps\n"
         "  --help         show this and stop\n");
    if (kernel->step > 1)
        printf("A unit is %s. A step is %llu of them.\n", kernel->unit, (unsigned long long)kernel->step);
    else
        printf("A unit is %s.\n", kernel->unit);
    puts("K, M and G stand for 1024, 1024^2 and 1024^3; in a rate for 10^3, 10^6 and 10^9.\n"
         "Exit status: 0 done, 1 no memory, 2 bad arguments, 3 the result is wrong.");
}

/* Read a whole number within bounds, or report what is wrong with it. */
static inline unsigned cm_between_or_exit(const char *name, const char *option, const char *text, unsigned least,
                                          unsigned most)
{
    uint64_t value = cm_parse_number(text);
    if (value < least || value > most) {
        fprintf(stderr, "%s: --%s must be a whole number from %u to %u, but is '%s'\n", name, option, least, most,
                text);
        exit(2);
    }
    return (unsigned)value;
}

/* Read a rate in units a second, or in bytes a second where the kernel's unit has bytes. */
static inline double cm_rate_or_exit(const cm_kernel *kernel, const char *text)
{
    const char *end;
    double rate = cm_leading_number(text, &end);
    double factor = *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    if (factor != 1)
        end++;
    if (strcmp(end, "B/s") == 0 && cm_bytes_per_unit(kernel) != 0)
        factor /= (double)cm_bytes_per_unit(kernel);
    else if (*end != '\0')
        rate = 0;
    if (rate <= 0 || rate > 1e15) {
        fprintf(stderr, "%s: --rate must be a number of units a second, such as 20M%s, but is '%s'\n", kernel->name,
                cm_bytes_per_unit(kernel) ? ", or of bytes a second, such as 5GB/s" : "", text);
        exit(2);
    }
    return rate * factor;
}

static inline const char *cm_mode_or_exit(const cm_kernel *kernel, const char *text)
{
    for (const char *const *mode = kernel->modes; *mode != NULL; mode++)
        if (strcmp(text, *mode) == 0)
            return *mode;
    fprintf(stderr, "%s: --mode must be one of", kernel->name);
    for (const char *const *mode = kernel->modes; *mode != NULL; mode++)
        fprintf(stderr, "%s %s", mode == kernel->modes ? "" : ",", *mode);
    fprintf(stderr, ", but is '%s'\n", text);
    exit(2);
}

/* Take one option; its letter is that of the list in cm_parse. */
static inline void cm_take(const cm_kernel *kernel, cm_options *options, int option)
{
    const char *name = kernel->name;
    switch (option) {
    case 'u': options->units = cm_number_or_exit(name, "units", optarg, 1); break;
    case 'b': options->size = optarg; break; /* what a cache's share comes to depends on the threads */
    case 'r': options->rate = cm_rate_or_exit(kernel, optarg); break;
    case 't': options->threads = cm_between_or_exit(name, "threads", optarg, 1, CM_MOST_THREADS); break;
    case 'p': options->parallel = cm_between_or_exit(name, "parallel", optarg, 1, CM_MOST_PARALLEL); break;
    case 'w': options->writes = cm_percent_or_exit(name, "writes", optarg); break;
    case 'g': options->huge = 1; break;
    case 's': options->huge = 0; break;
    case 'm': options->mode = cm_mode_or_exit(kernel, optarg); break;
    case 'd': options->directory = optarg; break;
    case 'h': cm_help(kernel); exit(0);
    default: exit(2); /* getopt_long has printed why */
    }
}

static inline cm_options cm_default_options(const cm_kernel *kernel)
{
    cm_options options = kernel->defaults;
    const char *temporary = getenv("TMPDIR");
    options.threads = options.threads > 0 ? options.threads : 1;
    options.parallel = options.parallel > 0 ? options.parallel : 1;
    options.mode = kernel->modes != NULL ? kernel->modes[0] : NULL;
    options.directory = temporary != NULL && *temporary != '\0' ? temporary : "/tmp";
    return options;
}

/* Read the command line of a kernel; a bad one is a sentence and status 2. */
static inline cm_options cm_parse(const cm_kernel *kernel, int argc, char **argv)
{
    static const struct {
        unsigned takes;
        struct option option;
    } all[] = {{0, {"help", no_argument, NULL, 'h'}},
               {0, {"units", required_argument, NULL, 'u'}},
               {CM_BYTES, {"bytes", required_argument, NULL, 'b'}},
               {CM_RATE, {"rate", required_argument, NULL, 'r'}},
               {CM_THREADS, {"threads", required_argument, NULL, 't'}},
               {CM_PARALLEL, {"parallel", required_argument, NULL, 'p'}},
               {CM_WRITES, {"writes", required_argument, NULL, 'w'}},
               {CM_HUGE, {"huge", no_argument, NULL, 'g'}},
               {CM_HUGE, {"small", no_argument, NULL, 's'}},
               {CM_MODE, {"mode", required_argument, NULL, 'm'}},
               {CM_DIRECTORY, {"directory", required_argument, NULL, 'd'}}};
    struct option taken[sizeof all / sizeof *all + 1] = {{NULL, 0, NULL, 0}};
    cm_options options = cm_default_options(kernel);
    int count = 0, option;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].takes == 0 || kernel->takes & all[i].takes)
            taken[count++] = all[i].option;
    while ((option = getopt_long(argc, argv, "", taken, NULL)) != -1)
        cm_take(kernel, &options, option);
    if (optind < argc) {
        fprintf(stderr, "%s: '%s' is not an option; see %s --help\n", kernel->name, argv[optind], kernel->name);
        exit(2);
    }
    if (options.size != NULL)
        options.bytes = cm_size_or_exit(kernel->name, options.size, options.threads, cm_least_bytes(kernel));
    if (kernel->takes & CM_BYTES && cm_share(&options) < cm_least_bytes(kernel)) {
        fprintf(stderr,
                "%s: --bytes %llu shared out among %u threads leaves %llu for each, fewer than the %llu it needs\n",
                kernel->name, (unsigned long long)options.bytes, options.threads,
                (unsigned long long)cm_share(&options), (unsigned long long)cm_least_bytes(kernel));
        exit(2);
    }
    if (kernel->check != NULL)
        kernel->check(&options);
    return options;
}

#endif
