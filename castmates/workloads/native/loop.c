/* loop: runs a command again and again, one beat per successful run: the keeper of programs without a heartbeat. */
#define _GNU_SOURCE /* pipe2 */
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kernel.h"

static const char help[] =
    "usage: loop [--units N] [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND again and again, until SIGTERM or until it fails; SIGTERM kills the run in progress.\n"
    "\n"
    "  --units N   stop after N units\n"
    "  --help      show this and stop\n"
    "\n"
    "K, M and G stand for 1024, 1024^2 and 1024^3. A unit is one completed run that ended with status 0.\n"
    "COMMAND does not see CASTMATES_HEARTBEAT, and is killed when loop is.\n"
    "Exit status: 0 done, 2 bad arguments, 126 or 127 COMMAND cannot be run, 128+N it was killed by signal N,\n"
    "else the status with which COMMAND failed.\n";

/* Parse the options of loop itself; optind is then the command. */
static uint64_t parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"units", required_argument, NULL, 'u'}, {NULL, 0, NULL, 0}};
    uint64_t units = 0;
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(0);
        } else if (option == 'u') {
            units = cm_number_or_exit("loop", "units", optarg, 1);
        } else {
            exit(2); /* getopt_long has said why */
        }
    }
    if (optind == argc) {
        fputs("loop: a command to run is missing; see loop --help\n", stderr);
        exit(2);
    }
    return units;
}

/* Become the command; reports the error through the pipe, which a successful exec closes. */
static void run_command(char **command, pid_t keeper, const sigset_t *signals, int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(127); /* the keeper died before the line above took effect */
    unsetenv(CM_HEARTBEAT_VARIABLE);
    sigprocmask(SIG_SETMASK, signals, NULL);
    execvp(command[0], command);
    int error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* Start the command; returns its pid, or the negative errno for which it cannot be run. */
static pid_t start(char **command, const sigset_t *signals)
{
    int report[2], error = 0;
    pid_t keeper = getpid();
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    pid_t child = fork();
    if (child == 0)
        run_command(command, keeper, signals, report[1]);
    if (child < 0)
        error = errno;
    close(report[1]);
    if (child > 0 && read(report[0], &error, sizeof error) > 0)
        waitpid(child, NULL, 0);
    close(report[0]);
    return error == 0 ? child : -error;
}

/* Wait for the child to end, or end it when we are told to stop; returns 1 when it ended by itself. */
static int await(pid_t child, const sigset_t *waited, int *status)
{
    for (;;) {
        int signal_number = sigwaitinfo(waited, NULL);
        if (signal_number == SIGCHLD && waitpid(child, status, WNOHANG) == child)
            return 1;
        if (signal_number == SIGTERM || signal_number == SIGINT) {
            kill(child, SIGKILL);
            waitpid(child, status, 0);
            return 0;
        }
    }
}

/* Say how the command failed, and choose our exit status after it. */
static int blame(const char *command, int status)
{
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "castmates loop: %s was killed by signal %d\n", command, WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    fprintf(stderr, "castmates loop: %s ended with status %d\n", command, WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

/* Run the command until it is enough; returns the exit status. */
static int keep(char **command, uint64_t units, cm_heartbeat *hb, const sigset_t *signals, const sigset_t *waited)
{
    for (uint64_t done = 0; units == 0 || done < units; done++) {
        int status = 0;
        pid_t child = start(command, signals);
        if (child < 0) {
            fprintf(stderr, "castmates loop: cannot run %s: %s\n", command[0], strerror(-child));
            return child == -ENOENT ? 127 : 126;
        }
        if (done == 0)
            cm_ready(hb);
        if (!await(child, waited, &status))
            return 0;
        if (status != 0)
            return blame(command[0], status);
        cm_beat(hb, 1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t units = parse(argc, argv);
    cm_heartbeat *hb = cm_heartbeat_or_exit();
    sigset_t waited, before;
    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGINT);
    sigprocmask(SIG_BLOCK, &waited, &before);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would hide how a run ended */

    int status = keep(argv + optind, units, hb, &before, &waited);
    if (status == 0)
        cm_finished(hb);
    else
        cm_failed(hb);
    return status;
}
