/* loop: runs a command again and again, one beat per successful run: the keeper of programs that end.

   While one run lasts, the next one is already there: it has called exec and stands before its first instruction,
   held by ptrace. This stop takes no time, passes for stopped and for frozen, and outlasts the SIGCONT of a thaw.

   A command that reports itself (--reports) beats into the same file in run after run, and nothing is prepared: while
   none has reported that it is ready, the state is that of a start, and the runner counts none of that time. */
#define _GNU_SOURCE /* pipe2 */
#include <getopt.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "program.h"

#define RESTARTS_VARIABLE "CASTMATES_RESTARTS"
#define PREPARE_AFTER_NS 10000000u /* from a switch on, so that the new run's first steps have the CPU for themselves */
#define SHORT_RUN_NS 2000000u /* after a run that took less, the next one is started plainly: nothing would be won */

static const char help[] =
    "usage: loop [--units N] [--ahead exec|fork|no] [--reports VARIABLE] [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND again and again, until SIGTERM or until it fails; SIGTERM kills the run in progress.\n"
    "\n"
    "  --units N      stop after N units\n"
    "  --ahead HOW    while one run of 2 ms or more lasts, prepare the next: 'exec' up to its first instruction\n"
    "                 (needs ptrace), 'fork' up to its exec, 'no' not at all; by default exec, or fork without ptrace\n"
    "  --reports VARIABLE\n"
    "                 COMMAND reports its steps itself, in the heartbeat that this variable names: its runs add\n"
    "                 nothing, SIGTERM is passed on, and a run without a step is the last\n"
    "  --help         show this and stop\n"
    "\n"
    "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one completed run that ended with status 0.\n"
    "COMMAND sees no CASTMATES_HEARTBEAT but that of --reports, and is killed when loop is.\n"
    "Exit status: 0 done, 2 bad arguments, 126 or 127 COMMAND cannot be run, 128+N it was killed by signal N,\n"
    "else the status with which COMMAND failed.\n";

/* How far the next run comes while the present one lasts; the numbers are those of the restarts file. */
enum ahead { UNDECIDED = 0, TO_EXEC = 1, TO_FORK = 2, NOT_AHEAD = 3 };

struct run {
    pid_t pid;    /* 0: there is none */
    int report;   /* has the errno for which the command cannot be run, or ends without a word at its exec */
    int gate;     /* an eventfd at which a run waits that has not called exec; -1: there is none */
    int waiting;  /* it stands at its barrier */
    int ended;
    int status;
    int error;    /* the errno for which it cannot be run */
    uint64_t ended_ns;
};

static const struct run NONE = {.report = -1, .gate = -1};

struct keeper {
    char **command;
    enum ahead ahead;
    uint64_t units; /* 0: for ever */
    const char *reports; /* the command beats into the file that this variable names; NULL: we beat */
    cm_heartbeat *hb;    /* NULL: the command beats, or nobody wants it */
    struct cm_file *own; /* the command's heartbeat; NULL: we beat, or nobody wants it */
    uint64_t units_reported; /* by the command, in all its runs that are over */
    struct cm_file *restarts; /* NULL: not wanted */
    sigset_t before, waited;
    uint64_t prepare_ns; /* when the next run is to be prepared; 0: there is nothing to prepare */
    struct run running, next;
};

static enum ahead parse_ahead(const char *text)
{
    if (strcmp(text, "exec") == 0)
        return TO_EXEC;
    if (strcmp(text, "fork") == 0)
        return TO_FORK;
    if (strcmp(text, "no") == 0)
        return NOT_AHEAD;
    fprintf(stderr, "loop: --ahead must be exec, fork or no, but is '%s'\n", text);
    exit(2);
}

/* Parse the options of loop itself; what follows them is the command. */
static void parse(struct keeper *keeper, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"units", required_argument, NULL, 'u'},
                                            {"ahead", required_argument, NULL, 'a'},
                                            {"reports", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(0);
        } else if (option == 'u') {
            keeper->units = cm_number_or_exit("loop", "units", optarg, 1);
        } else if (option == 'a') {
            keeper->ahead = parse_ahead(optarg);
        } else if (option == 'r') {
            keeper->reports = optarg;
            keeper->ahead = NOT_AHEAD;
        } else {
            exit(2); /* getopt_long has printed why */
        }
    }
    if (optind == argc) {
        fputs("loop: a command to run is missing; see loop --help\n", stderr);
        exit(2);
    }
    keeper->command = argv + optind;
}

/* Find out, in a child, whether a child may be traced; 0, or the errno. */
static int try_ptrace(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return errno;
    if (!WIFSTOPPED(status))
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    kill(child, SIGKILL); /* a freezer stopped it, which we see because it is traced */
    waitpid(child, &status, 0);
    return 0;
}

/* Prepare the next run as far as this machine permits, and report where that is not the usual way. */
static void choose_ahead(struct keeper *keeper)
{
    if (keeper->ahead == UNDECIDED) {
        int error = try_ptrace();
        keeper->ahead = error == 0 ? TO_EXEC : TO_FORK;
        if (error != 0)
            fprintf(stderr, "castmates loop: ptrace is not permitted (%s), so the next run waits before its exec\n",
                    strerror(error));
    }
    if (keeper->restarts != NULL)
        __atomic_store_n(&keeper->restarts->state, (uint32_t)keeper->ahead, __ATOMIC_RELEASE);
}

/* Record that a run has ended and none has followed yet. */
static void open_gap(struct cm_file *restarts, uint64_t ended_ns)
{
    if (restarts == NULL)
        return;
    uint64_t head = restarts->head;
    struct cm_record *record = &restarts->records[head & (restarts->capacity - 1)];
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&record->ns, ended_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&record->units, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&restarts->head, head + 1, __ATOMIC_RELEASE);
}

/* Record that the next run goes on from here; before the first run there was no gap. */
static void close_gap(struct cm_file *restarts)
{
    if (restarts == NULL || restarts->head == 0)
        return;
    struct cm_record *record = &restarts->records[(restarts->head - 1) & (restarts->capacity - 1)];
    __atomic_store_n(&record->units, cm_now(), __ATOMIC_RELEASE);
}

static void refuse(int report)
{
    int error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* Become the command, after the barrier where that comes before exec. */
static void become_command(const struct keeper *keeper, pid_t parent, int gate, int report)
{
    uint64_t opened;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the keeper died before the line above took effect */
    if (keeper->reports == NULL || strcmp(keeper->reports, CM_HEARTBEAT_VARIABLE) != 0)
        unsetenv(CM_HEARTBEAT_VARIABLE);
    unsetenv(RESTARTS_VARIABLE);
    while (gate >= 0 && read(gate, &opened, sizeof opened) < 0)
        if (errno != EINTR)
            refuse(report);
    if (keeper->ahead == TO_EXEC && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        refuse(report);
    sigprocmask(SIG_SETMASK, &keeper->before, NULL);
    execvp(keeper->command[0], keeper->command);
    refuse(report);
}

/* Fork a run and send it to its barrier. */
static struct run prepare(const struct keeper *keeper)
{
    struct run run = NONE;
    int report[2];
    pid_t parent = getpid();
    run.waiting = keeper->ahead != TO_EXEC;
    if (keeper->ahead == TO_FORK)
        run.gate = eventfd(0, EFD_CLOEXEC);
    if ((keeper->ahead == TO_FORK && run.gate < 0) || pipe2(report, O_CLOEXEC) < 0) {
        run.error = errno;
        run.ended = 1;
        return run;
    }
    run.report = report[0];
    run.pid = fork();
    if (run.pid == 0)
        become_command(keeper, parent, run.gate, report[1]);
    if (run.pid < 0) {
        run.error = errno;
        run.ended = 1;
        run.pid = 0;
    }
    close(report[1]);
    return run;
}

static void hear_report(struct run *run)
{
    int error;
    if (read(run->report, &error, sizeof error) == sizeof error)
        run->error = error;
}

/* Notice that a run came to its barrier, or to its end. */
static void look(struct run *run, uint64_t now)
{
    int status;
    if (run->pid == 0 || run->ended || waitpid(run->pid, &status, WNOHANG) != run->pid)
        return;
    if (!WIFSTOPPED(status)) {
        run->ended = 1;
        run->status = status;
        run->ended_ns = now;
        hear_report(run);
    } else if (WSTOPSIG(status) == SIGTRAP) { /* exec is done */
        ptrace(PTRACE_SETOPTIONS, run->pid, NULL, PTRACE_O_EXITKILL);
        run->waiting = 1;
    } else { /* a signal on its way to exec; that we see a freezer's SIGSTOP means that the freeze is over */
        long number = WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, run->pid, NULL, number);
    }
}

/* Sleep until a signal comes, and prepare the next run when it is time to; returns the signal's number. */
static int sleep_for_signal(struct keeper *keeper)
{
    while (keeper->prepare_ns != 0) {
        uint64_t now = cm_now();
        if (now >= keeper->prepare_ns) {
            keeper->prepare_ns = 0;
            keeper->next = prepare(keeper);
            break;
        }
        uint64_t left = keeper->prepare_ns - now;
        struct timespec time = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        int signal_number = sigtimedwait(&keeper->waited, NULL, &time);
        if (signal_number > 0)
            return signal_number;
    }
    return sigwaitinfo(&keeper->waited, NULL);
}

/* Sleep until this run is at its barrier or has ended; returns 0 when we are asked to stop instead. */
static int await(struct keeper *keeper, const struct run *run)
{
    while (!run->waiting && !run->ended) {
        int signal_number = sleep_for_signal(keeper);
        uint64_t now = cm_now();
        if (signal_number == SIGTERM || signal_number == SIGINT)
            return 0;
        look(&keeper->running, now);
        look(&keeper->next, now);
    }
    return 1;
}

/* Let the next run go: it is the running one from here on. */
static void switch_runs(struct keeper *keeper)
{
    const uint64_t open = 1;
    struct run *run = &keeper->running;
    *run = keeper->next;
    run->waiting = 0;
    keeper->next = NONE;
    if (keeper->ahead == NOT_AHEAD) {
        hear_report(run); /* returns at its exec */
        close_gap(keeper->restarts);
        return;
    }
    close_gap(keeper->restarts); /* first, because the run may then have our CPU for a while */
    if (keeper->ahead == TO_EXEC)
        ptrace(PTRACE_DETACH, run->pid, NULL, NULL);
    else if (write(run->gate, &open, sizeof open) < 0)
        perror("castmates loop"); /* cannot be: the eventfd is ours and empty */
}

static void forget(struct run *run)
{
    if (run->report >= 0)
        close(run->report);
    if (run->gate >= 0)
        close(run->gate);
    *run = NONE;
}

static void end(const struct keeper *keeper, struct run *run)
{
    if (run->pid != 0 && !run->ended) {
        kill(run->pid, keeper->reports != NULL ? SIGTERM : SIGKILL);
        while (waitpid(run->pid, &run->status, 0) == run->pid && WIFSTOPPED(run->status))
            continue;
    }
}

/* Report how the command failed, and choose our exit status after it; `when` is "" for the run whose turn it was. */
static int blame(const char *command, const struct run *run, const char *when)
{
    if (run->error != 0) {
        fprintf(stderr, "castmates loop: cannot run %s: %s\n", command, strerror(run->error));
        return run->error == ENOENT ? 127 : 126;
    }
    if (WIFSIGNALED(run->status)) {
        fprintf(stderr, "castmates loop: %s was killed by signal %d%s\n", command, WTERMSIG(run->status), when);
        return 128 + WTERMSIG(run->status);
    }
    fprintf(stderr, "castmates loop: %s ended with status %d%s\n", command, WEXITSTATUS(run->status), when);
    return WEXITSTATUS(run->status);
}

/* End as the command did, which has reported what there was to report. */
static int end_as(const struct run *run)
{
    if (!WIFSIGNALED(run->status))
        return WEXITSTATUS(run->status);
    const struct rlimit none = {0, 0};
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(run->status));
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(run->status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(run->status));
    return 128 + WTERMSIG(run->status);
}

/* Note how many units a whole run made: the number of runs, and of the units the fewest and the most. */
static void note_units(struct cm_file *restarts, uint64_t units)
{
    if (restarts == NULL)
        return;
    uint64_t runs = ++restarts->reserved[0], *fewest = &restarts->reserved[1], *most = &restarts->reserved[2];
    *fewest = runs == 1 || units < *fewest ? units : *fewest;
    *most = units > *most ? units : *most;
}

/* Whether the run left processes behind, which may go on making steps: they are our children now. */
static int left_behind(const struct keeper *keeper)
{
    pid_t ended;
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
        continue;
    if (ended == 0)
        fprintf(stderr, "castmates loop: %s ended and left processes behind\n", keeper->command[0]);
    return ended == 0;
}

/* Whether a command that reports itself goes on in another run: it made steps in this one, and found no fault. What it
   reports from here on is that of a start, until it is ready again. */
static int goes_on(struct keeper *keeper)
{
    struct cm_file *own = keeper->own;
    if (own == NULL)
        return 1;
    uint64_t head = __atomic_load_n(&own->head, __ATOMIC_ACQUIRE), before = keeper->units_reported;
    if (head > 0)
        keeper->units_reported = own->records[(head - 1) & (own->capacity - 1)].units;
    if (left_behind(keeper) || keeper->units_reported == before || __atomic_load_n(&own->state, __ATOMIC_ACQUIRE) == CM_FAILED)
        return 0;
    note_units(keeper->restarts, keeper->units_reported - before);
    __atomic_store_n(&own->state, (uint32_t)CM_STARTING, __ATOMIC_RELEASE);
    return 1;
}

/* Run the command until it is enough; returns the exit status. */
static int keep(struct keeper *keeper)
{
    struct run *running = &keeper->running, *next = &keeper->next;
    uint64_t took = UINT64_MAX; /* the last run; not known yet */
    for (uint64_t done = 0; keeper->units == 0 || done < keeper->units; done++) {
        int last = keeper->units != 0 && done + 1 == keeper->units;
        keeper->prepare_ns = 0;
        if (next->pid == 0) { /* not ahead, not yet, or it could not be forked when it was tried */
            forget(next);
            *next = prepare(keeper);
        }
        if (!await(keeper, next))
            return 0;
        if (next->ended)
            return blame(keeper->command[0], next, " before its turn");
        uint64_t began = cm_now();
        switch_runs(keeper);
        if (keeper->ahead != NOT_AHEAD && !last && took >= SHORT_RUN_NS)
            keeper->prepare_ns = began + (took / 2 < PREPARE_AFTER_NS ? took / 2 : PREPARE_AFTER_NS);
        if (done == 0)
            cm_ready(keeper->hb);
        if (!await(keeper, running))
            return 0;
        if (keeper->reports != NULL && running->error == 0 && (running->status != 0 || !goes_on(keeper)))
            return end_as(running);
        if (running->error != 0 || running->status != 0)
            return blame(keeper->command[0], running, "");
        if (!last)
            open_gap(keeper->restarts, running->ended_ns);
        cm_beat(keeper->hb, 1);
        took = running->ended_ns - began;
        forget(running);
    }
    return 0;
}

/* Open a file with the layout of a heartbeat file, where the runner named one. */
static struct cm_file *file_or_exit(const char *variable)
{
    const char *path = getenv(variable);
    if (path == NULL || *path == '\0')
        return NULL;
    struct cm_file *file = cm_heartbeat_map(path);
    if (file == NULL)
        exit(2);
    return file;
}

int main(int argc, char **argv)
{
    struct keeper keeper = {.running = NONE, .next = NONE};
    parse(&keeper, argc, argv);
    if (keeper.reports != NULL) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        keeper.own = file_or_exit(keeper.reports);
    } else {
        keeper.hb = cm_heartbeat_or_exit();
    }
    keeper.restarts = file_or_exit(RESTARTS_VARIABLE);
    sigemptyset(&keeper.waited);
    sigaddset(&keeper.waited, SIGCHLD);
    sigaddset(&keeper.waited, SIGTERM);
    sigaddset(&keeper.waited, SIGINT);
    sigprocmask(SIG_BLOCK, &keeper.waited, &keeper.before);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would hide how a run ended */
    choose_ahead(&keeper);

    int status = keep(&keeper);
    end(&keeper, &keeper.running);
    end(&keeper, &keeper.next);
    if (status == 0)
        cm_finished(keeper.hb);
    else
        cm_failed(keeper.hb);
    return status;
}
