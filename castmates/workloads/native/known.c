/* known: tasks whose counts are known beforehand; `castmates doctor --verify-counters` runs them.

   known TASK [cpu=N] [bytes=N] [directory=D]          prepares, prints "ready", and does as many units as a line asks
   known TASK [cpu=N] [bytes=N] [directory=D] units=N  does so many and ends

   After each portion it prints "done" and its own account of it: minor faults, major faults, voluntary and other
   switches, ns on a CPU, as getrusage and the clock of the process show. What cannot be done here is one line,
   "cannot: " and why. */
#include "known.h"

#include "known_core.h"
#include "known_kernel.h"

static const known_task tasks[] = {
    {"instructions", "100 instructions", has_assembler, count_instructions},
    {"branches", "10 branches", has_assembler, count_branches},
    {"cycles", "100 cycles", has_assembler, count_cycles},
    {"coin", "one branch that is taken by chance", NULL, count_misses},
    {"loads", "16 loads", NULL, count_loads},
    {"stores", "16 stores", NULL, count_stores},
    {"stream", "one line, in order", prepare_stream, stream},
    {"chase", "one line, at random", prepare_chase, chase},
    {"pages", "one page, at random", prepare_pages, chase},
    {"touch", "one page that was given back", NULL, touch},
    {"map-touch", "one page of a new mapping", NULL, map_touch},
    {"kernel-touch", "one new page that the kernel writes to", NULL, kernel_touch},
    {"disk", "one page that is on the disk", prepare_disk, disk},
    {"pingpong", "one round trip between two threads", prepare_pingpong, pingpong},
    {"migrate", "one move to another CPU", prepare_migrate, migrate},
    {"spin", "1000 ns on a CPU", NULL, spin},
    {"crew-touch", "one page of a new mapping, in each of three threads", prepare_crew, crew_touch},
    {"crew-spin", "1000 ns on a CPU, in each of three threads", prepare_crew, crew_spin},
};

typedef struct {
    long minor, major, waits, pushes;
    long long ns;
} account;

static account own_account(void)
{
    struct rusage used;
    struct timespec cpu;
    getrusage(RUSAGE_SELF, &used);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (account){used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw,
                     (long long)cpu.tv_sec * 1000000000 + cpu.tv_nsec};
}

static void give_up(const char *why)
{
    printf("cannot: %s\n", why);
    exit(0);
}

static void portion(const known_task *task, uint64_t units)
{
    account before = own_account();
    const char *why = task->work(units);
    account after = own_account();
    if (why != NULL)
        give_up(why);
    printf("done %ld %ld %ld %ld %lld\n", after.minor - before.minor, after.major - before.major,
           after.waits - before.waits, after.pushes - before.pushes, after.ns - before.ns);
    fflush(stdout);
}

static const known_task *task_or_exit(const char *name)
{
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (name != NULL && strcmp(tasks[i].name, name) == 0)
            return &tasks[i];
    fprintf(stderr, "usage: known TASK [cpu=N] [bytes=N] [directory=D] [units=N]; a unit of each TASK is\n");
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        fprintf(stderr, "  %-13s %s\n", tasks[i].name, tasks[i].unit);
    exit(2);
}

static uint64_t number_or_exit(const char *word)
{
    char *end;
    const char *digits = strchr(word, '=') + 1;
    errno = 0;
    unsigned long long number = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end != '\0' || errno != 0) {
        fprintf(stderr, "known: '%s' must be a whole number\n", word);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    const known_task *task = task_or_exit(argv[argc > 1]);
    known_options told = {.bytes = 64u << 20, .cpu = -1, .directory = "/tmp"};
    uint64_t units = 0;
    for (int i = 2; i < argc; i++) {
        if (strncmp(argv[i], "cpu=", 4) == 0)
            told.cpu = (int)number_or_exit(argv[i]);
        else if (strncmp(argv[i], "bytes=", 6) == 0)
            told.bytes = number_or_exit(argv[i]);
        else if (strncmp(argv[i], "units=", 6) == 0)
            units = number_or_exit(argv[i]);
        else if (strncmp(argv[i], "directory=", 10) == 0)
            told.directory = argv[i] + 10;
        else
            task_or_exit(NULL);
    }
    if (told.cpu >= CPU_SETSIZE || (told.cpu >= 0 && known_stay(told.cpu) != 0))
        give_up("it may not choose its CPU");
    const char *why = task->prepare != NULL ? task->prepare(&told) : NULL;
    if (why != NULL)
        give_up(why);
    if (units > 0) {
        portion(task, units);
        return 0;
    }
    printf("ready\n");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) /* units come as the line's number */
        portion(task, strtoull(line, NULL, 10));
    return 0;
}
