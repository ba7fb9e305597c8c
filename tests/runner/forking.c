/* A patched program whose calls come from several processes.

   forking turns: 5 calls, 10 of a child that ends, 5 more. forking both: as turns, and the child stays for them.
   forking within: a child is forked in the middle of a call, and calls as well. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void call_barrier();

static int armed, status;

/* What takes the time of a beat. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (armed) {
        armed = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* of a call that never returns */
            call_barrier();
            _exit(0);
        }
        waitpid(child, &status, 0);
    }
    return (int)syscall(SYS_clock_gettime, clock, time);
}

static void calls(int number)
{
    while (number-- > 0)
        call_barrier();
}

int main(int argc, char **argv)
{
    int ends[2];
    char done = 0;
    if (argc > 1 && strcmp(argv[1], "within") == 0) {
        armed = 1;
        call_barrier();
        return status != 0;
    }
    calls(5);
    if (pipe(ends) != 0)
        return 8;
    pid_t child = fork();
    if (child == 0) {
        calls(10);
        if (write(ends[1], &done, 1) != 1)
            _exit(9);
        if (strcmp(argv[1], "both") == 0)
            pause();
        _exit(0);
    }
    if (strcmp(argv[1], "turns") == 0)
        waitpid(child, &status, 0);
    else if (read(ends[0], &done, 1) != 1)
        return 7;
    calls(5);
    kill(child, SIGKILL);
    return status != 0;
}
