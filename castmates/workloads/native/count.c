/* count: runs a command and counts what it does: the keeper of programs that show nothing of their progress.

   Counted are instructions in user mode, by a counter of the processor, or calls of a function, by a probe that the kernel
   sets on it: for the command, its children and its threads. The probe is set for all processes and recorded on our CPUs,
   with all forks, by which calls of strangers are left out: one that is inherited reads the file's name from the memory of whoever
   forks, so that the fork fails (seen on Linux 6.18). A look comes every two milliseconds, and beats if there is
   something new. A beat of instructions has the time at which the counter was read; one of calls has the time of the
   last call, as the kernel recorded it. So it does not matter when a look comes, but for how many beats there are. */
#define _GNU_SOURCE /* pipe2, ppoll, sched_getaffinity */
#include <getopt.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include "follow.h"

#define LOOK_NS 2000000
#define RING_PAGES 32u /* of records, on each CPU: 5461 calls between two looks */
#define FULL 64u       /* bytes: with fewer left of a ring, the next record may have been lost */
#define MOST_PLACES 32
#define MOST_EVENTS 4096
#define MOST_TURNS 64 /* over the rings, for chains of forks */
#define MOST_PIDS (1u << 22) /* the kernel's limit */

static const char help[] =
    "usage: count (--instructions | --calls TYPE,OFFSET[,COUNTER],FILE ...) [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND, and beats with what it and its children have done.\n"
    "\n"
    "  --instructions  those that retired in user mode, as the processor counts them\n"
    "  --calls WHAT    how often the instruction at OFFSET of FILE was reached; TYPE is that of the kernel's uprobe\n"
    "                  device, and COUNTER the offset of a USDT probe's semaphore; given several times, all count\n"
    "  --help          show this and stop\n"
    "\n"
    "A unit is one instruction or one call. SIGTERM, SIGINT and SIGHUP are handed on. COMMAND does not see\n"
    "CASTMATES_HEARTBEAT, and is killed when count is. Exit status: that of COMMAND, 128+N if signal N killed it (0 if\n"
    "that was our own SIGTERM), 2 bad arguments, 4 it cannot be counted here, 126 or 127 COMMAND cannot be run.\n";

struct keeper {
    struct cm_followed followed;
    cm_heartbeat *hb;
    struct perf_event_attr attrs[MOST_PLACES];
    int places; /* of attrs */
    int calls;  /* and not instructions */
    int events[MOST_EVENTS];
    struct perf_event_mmap_page *rings[MOST_EVENTS]; /* of calls */
    int mixed[MOST_EVENTS]; /* when the ring was last full, it had other records than calls of the command */
    int unclear;       /* whose records were lost */
    int count;         /* of events */
    uint64_t counted;  /* so far */
    uint64_t beaten;   /* of these */
    uint64_t beat_ns;  /* of the last beat */
    uint64_t ours[MOST_PIDS / 64]; /* a bit for each process of the command */
};

static void refuse(const char *what, const char *text)
{
    fprintf(stderr, "count: %s: '%s'; see count --help\n", what, text);
    exit(2);
}

static uint64_t number_or_exit(char **text, const char *whole)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(*text, &end, 0);
    if (end == *text || *end != ',' || errno != 0)
        refuse("--calls must have whole numbers before the file", whole);
    *text = end + 1;
    return value;
}

static void of_calls(struct keeper *keeper, char *text)
{
    char *rest = text;
    if (keeper->places == MOST_PLACES)
        refuse("--calls is given more than 32 times", text);
    struct perf_event_attr *attr = &keeper->attrs[keeper->places++];
    attr->size = sizeof *attr;
    keeper->calls = 1;
    attr->type = (uint32_t)number_or_exit(&rest, text);
    attr->probe_offset = number_or_exit(&rest, text);
    if (*rest != '/')
        attr->config = number_or_exit(&rest, text) << 32;
    if (*rest != '/')
        refuse("--calls must end with a file from the root", text);
    attr->uprobe_path = (uint64_t)(uintptr_t)rest;
    attr->sample_period = 1;
    attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr->task = 1; /* forks are recorded too */
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
}

static void of_instructions(struct keeper *keeper)
{
    struct perf_event_attr *attr = &keeper->attrs[keeper->places++];
    attr->size = sizeof *attr;
    attr->type = PERF_TYPE_HARDWARE;
    attr->config = PERF_COUNT_HW_INSTRUCTIONS;
    attr->exclude_kernel = attr->exclude_hv = 1;
    attr->disabled = attr->inherit = attr->enable_on_exec = attr->pinned = 1;
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

static void parse(struct keeper *keeper, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"instructions", no_argument, NULL, 'i'},
                                            {"calls", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(0);
        } else if (option == 'i') {
            if (keeper->places == 0)
                of_instructions(keeper);
        } else if (option == 'c') {
            of_calls(keeper, optarg);
        } else {
            exit(2); /* getopt_long has printed why */
        }
    }
    if (keeper->places == 0 || optind == argc) {
        fputs("count: what to count and a command to run are needed; see count --help\n", stderr);
        exit(2);
    }
    keeper->followed.command = argv + optind;
}

/* Open one event of the command, which waits for its exec; 0, or the errno. */
static int open_event(struct keeper *keeper, struct perf_event_attr *attr, int cpu)
{
    if (keeper->count == MOST_EVENTS)
        return EMFILE;
    pid_t who = keeper->calls ? -1 : keeper->followed.pid;
    int fd = (int)syscall(SYS_perf_event_open, attr, who, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    if (keeper->calls) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        void *ring = mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (ring == MAP_FAILED)
            return errno;
        keeper->rings[keeper->count] = ring;
    }
    keeper->events[keeper->count++] = fd;
    return 0;
}

/* Instructions have one event on whichever CPU, calls one on each of ours. */
static int open_events(struct keeper *keeper)
{
    cpu_set_t own;
    int error = 0;
    if (!keeper->calls)
        return open_event(keeper, &keeper->attrs[0], -1);
    if (sched_getaffinity(0, sizeof own, &own) < 0)
        return errno;
    for (int place = 0; place < keeper->places; place++)
        for (int cpu = 0; cpu < CPU_SETSIZE && error == 0; cpu++)
            if (CPU_ISSET(cpu, &own))
                error = open_event(keeper, &keeper->attrs[place], cpu);
    return error;
}

/* As cm_beat, with a time of our own. */
static void beat(struct keeper *keeper, uint64_t ns)
{
    cm_heartbeat *hb = keeper->hb;
    uint64_t units = keeper->counted - keeper->beaten;
    keeper->beaten = keeper->counted;
    if (hb == NULL || units == 0)
        return;
    struct cm_record *record = &hb->file->records[hb->head & hb->last_slot];
    hb->units += units;
    keeper->beat_ns = ns > keeper->beat_ns ? ns : keeper->beat_ns + 1;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&record->ns, keeper->beat_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&record->units, hb->units, __ATOMIC_RELAXED);
    __atomic_store_n(&hb->file->head, ++hb->head, __ATOMIC_RELEASE);
}

static uint64_t word_at(const char *data, uint64_t place, uint64_t size)
{
    uint64_t word;
    memcpy(&word, data + (place & (size - 1)), sizeof word); /* records are multiples of 8 bytes: no word wraps */
    return word;
}

static int is_ours(const struct keeper *keeper, uint32_t pid)
{
    return pid < MOST_PIDS && (keeper->ours[pid / 64] >> (pid % 64) & 1) != 0;
}

static void set_ours(struct keeper *keeper, uint32_t pid, int ours)
{
    uint64_t bit = (uint64_t)1 << (pid % 64);
    if (pid < MOST_PIDS)
        keeper->ours[pid / 64] = ours ? keeper->ours[pid / 64] | bit : keeper->ours[pid / 64] & ~bit;
}

/* Learn from a ring which processes were started, and by whom; returns how many of them were not known to be ours. */
static int learn(struct keeper *keeper, const struct perf_event_mmap_page *ring)
{
    const char *data = (const char *)ring + (size_t)sysconf(_SC_PAGESIZE);
    uint64_t size = RING_PAGES * (uint64_t)sysconf(_SC_PAGESIZE), tail = ring->data_tail;
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    int more = 0;
    for (struct perf_event_header header; tail < head; tail += header.size) {
        uint64_t first = word_at(data, tail, size);
        memcpy(&header, &first, sizeof header);
        if (header.type != PERF_RECORD_FORK)
            continue;
        uint64_t who = word_at(data, tail + 8, size);
        uint32_t pid = (uint32_t)who, parent = (uint32_t)(who >> 32);
        if (pid == parent) /* it is a thread */
            continue;
        more += is_ours(keeper, parent) && !is_ours(keeper, pid);
        set_ours(keeper, pid, is_ours(keeper, parent));
    }
    return more;
}

/* Take the calls up to a moment from a ring, and return the time of the last one; 0 if there was none. Records that were
   lost are calls of the command if the full ring had nothing else; while we are frozen, strangers may fill it. */
static uint64_t take(struct keeper *keeper, int one, uint64_t until_ns)
{
    struct perf_event_mmap_page *ring = keeper->rings[one];
    const char *data = (const char *)ring + (size_t)sysconf(_SC_PAGESIZE);
    uint64_t size = RING_PAGES * (uint64_t)sysconf(_SC_PAGESIZE), last = 0, tail = ring->data_tail;
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
    int is_full = size - (head - tail) < FULL, others = 0;
    while (tail < head) {
        uint64_t first = word_at(data, tail, size);
        struct perf_event_header header;
        memcpy(&header, &first, sizeof header);
        if (header.type == PERF_RECORD_SAMPLE) {
            uint32_t pid = (uint32_t)word_at(data, tail + 8, size);
            uint64_t ns = word_at(data, tail + 16, size);
            if (ns > until_ns)
                break; /* calls on other CPUs may come before it */
            if (is_ours(keeper, pid)) {
                last = ns;
                keeper->counted++;
            } else {
                others = 1;
            }
        } else if (header.type == PERF_RECORD_LOST) {
            keeper->unclear |= keeper->mixed[one];
            keeper->counted += word_at(data, tail + 16, size);
            last = last > until_ns ? last : until_ns;
        } else {
            others = 1;
        }
        tail += header.size;
    }
    if (is_full)
        keeper->mixed[one] = others;
    __atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
    return last;
}

/* Look how far the command is; returns 0, or 4 where what was counted is not all. */
static int look(struct keeper *keeper)
{
    uint64_t now = cm_now(), last = 0;
    if (!keeper->calls) {
        struct { uint64_t value, enabled, running; } read_now;
        ssize_t got = read(keeper->events[0], &read_now, sizeof read_now);
        if (got < 0 && (errno == ECHILD || errno == EINTR || errno == EAGAIN))
            return 0;
        if (got < 0) {
            perror("castmates count: the counter of instructions cannot be read");
            return 4;
        }
        if (got == 0 || read_now.running < read_now.enabled) { /* at its end is one that lost its place */
            fputs("castmates count: others use the counters of instructions, so that some were not counted\n", stderr);
            return 4;
        }
        keeper->counted = read_now.value;
        last = now + (cm_now() - now) / 2;
    } else {
        int more = 1; /* a fork may lie in an earlier ring than that of its parent */
        for (int turn = 0; turn < MOST_TURNS && more; turn++) {
            more = 0;
            for (int one = 0; one < keeper->count; one++)
                more += learn(keeper, keeper->rings[one]);
        }
        for (int one = 0; one < keeper->count; one++) {
            uint64_t ns = take(keeper, one, now);
            last = ns > last ? ns : last;
        }
        if (keeper->unclear) {
            fputs("castmates count: records of calls were lost, and other processes made some of them, so that the number "
                  "of calls is not known; count a function that is called less often, or free these CPUs of others\n",
                  stderr);
            return 4;
        }
    }
    if (keeper->calls && keeper->counted > keeper->beaten && keeper->beaten == 0)
        cm_ready(keeper->hb);
    beat(keeper, last);
    return 0;
}

/* Look again and again until the command has ended; returns its status as wait reports it. */
static int follow(struct keeper *keeper, int *wrong)
{
    struct pollfd signals = {.fd = keeper->followed.signals, .events = POLLIN};
    const struct timespec pause = {0, LOOK_NS};
    int status = 0;
    while (!cm_hear_signals(&keeper->followed, &status)) {
        if ((*wrong = look(keeper)) != 0) {
            kill(keeper->followed.pid, SIGKILL);
            waitpid(keeper->followed.pid, &status, 0);
            return status;
        }
        ppoll(&signals, 1, &pause, NULL);
    }
    *wrong = look(keeper);
    return status;
}

/* Explain why the kernel counts nothing; returns the exit status. */
static int blame_kernel(const struct keeper *keeper, int error)
{
    const char *why = error == ENOENT || error == EOPNOTSUPP || error == ENODEV
                          ? "this machine has no such counter; a virtual machine often has none"
                      : error == EACCES || error == EPERM ? "it needs root, or CAP_PERFMON, or a lower "
                                                            "kernel.perf_event_paranoid"
                                                          : strerror(error);
    fprintf(stderr, "castmates count: the kernel does not count %s: %s\n",
            keeper->calls ? "these calls" : "instructions", why);
    return 4;
}

/* Start the command with its events, which count from its exec on; 0, or our exit status. */
static int start(struct keeper *keeper)
{
    int gate[2], error = cm_listen(&keeper->followed), report = -1;
    if (error == 0 && (pipe2(gate, O_CLOEXEC) < 0 || (report = cm_fork_command(&keeper->followed, -1, gate[0])) < 0))
        error = errno;
    if (error != 0)
        return cm_blame_start(&keeper->followed, "count", error);
    if ((error = open_events(keeper)) != 0) {
        kill(keeper->followed.pid, SIGKILL);
        waitpid(keeper->followed.pid, NULL, 0);
        return blame_kernel(keeper, error);
    }
    set_ours(keeper, (uint32_t)keeper->followed.pid, 1);
    if (write(gate[1], "", 1) < 0)
        perror("castmates count"); /* cannot be: it reads */
    error = cm_await_exec(report);
    return error == 0 ? 0 : cm_blame_start(&keeper->followed, "count", error);
}

int main(int argc, char **argv)
{
    static struct keeper keeper;
    int wrong = 0;
    parse(&keeper, argc, argv);
    keeper.hb = cm_heartbeat_or_exit();
    int status = start(&keeper);
    if (status == 0) {
        if (!keeper.calls)
            cm_ready(keeper.hb);
        int ended = follow(&keeper, &wrong);
        status = wrong != 0 ? wrong : cm_verdict(&keeper.followed, "count", ended);
    }
    if (status == 0 || (keeper.followed.asked && wrong == 0)) /* how it takes our signal shows nothing of its work */
        cm_finished(keeper.hb);
    else
        cm_failed(keeper.hb);
    return status;
}
