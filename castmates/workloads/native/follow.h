/* What keepers have in common that start a command once and report for it: its start, the signals, its end. */
#ifndef CASTMATES_FOLLOW_H
#define CASTMATES_FOLLOW_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "program.h"

struct cm_followed {
    char **command;
    pid_t pid;
    int asked; /* a signal was handed on */
    int signals; /* a signalfd */
    sigset_t before;
};

/* Block what is handed on, and hear of it by a file; 0, or the errno. */
static inline int cm_listen(struct cm_followed *followed)
{
    sigset_t heard;
    sigemptyset(&heard);
    for (const int *one = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *one != 0; one++)
        sigaddset(&heard, *one);
    sigprocmask(SIG_BLOCK, &heard, &followed->before);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would hide how the command ended */
    signal(SIGPIPE, SIG_IGN);
    followed->signals = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
    return followed->signals < 0 ? errno : 0;
}

static inline void cm_become_command(const struct cm_followed *followed, pid_t parent, int output, int gate, int report)
{
    char open;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the keeper died before the line above took effect */
    unsetenv(CM_HEARTBEAT_VARIABLE);
    if (output >= 0) {
        dup2(output, 1);
        dup2(output, 2);
    }
    while (gate >= 0 && read(gate, &open, 1) < 0 && errno == EINTR)
        continue;
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &followed->before, NULL);
    execvp(followed->command[0], followed->command);
    int error = errno;
    if (write(report, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

/* Fork the command, which writes to `output`, or to ours if that is -1; it goes on to its exec when a byte comes from
   `gate`, or at once if that is -1. Returns where it will report why it cannot be run; -1 and errno where it cannot be
   forked. */
static inline int cm_fork_command(struct cm_followed *followed, int output, int gate)
{
    int report[2];
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC) < 0 || (followed->pid = fork()) < 0)
        return -1;
    if (followed->pid == 0)
        cm_become_command(followed, parent, output, gate, report[1]);
    close(report[1]);
    return report[0];
}

/* Wait for its exec; 0, or the errno for which the command cannot be run. */
static inline int cm_await_exec(int report)
{
    int error = 0;
    while (read(report, &error, sizeof error) < 0 && errno == EINTR)
        continue;
    close(report);
    return error;
}

/* Hand signals on, and return whether the command has ended. */
static inline int cm_hear_signals(struct cm_followed *followed, int *status)
{
    struct signalfd_siginfo heard;
    while (read(followed->signals, &heard, sizeof heard) == (ssize_t)sizeof heard) {
        if (heard.ssi_signo == SIGCHLD)
            continue;
        followed->asked = 1;
        kill(followed->pid, (int)heard.ssi_signo);
    }
    return waitpid(followed->pid, status, WNOHANG) == followed->pid;
}

/* Report that the command cannot be run, and choose the exit status. */
static inline int cm_blame_start(const struct cm_followed *followed, const char *keeper, int error)
{
    fprintf(stderr, "castmates %s: cannot run %s: %s\n", keeper, followed->command[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

/* Choose our exit status, and report what the command cannot have reported itself. */
static inline int cm_verdict(const struct cm_followed *followed, const char *keeper, int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status) == 128 + SIGTERM && followed->asked ? 0 : WEXITSTATUS(status);
    if (followed->asked)
        return 0;
    fprintf(stderr, "castmates %s: %s was killed by signal %d\n", keeper, followed->command[0], WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

#endif
