/* trace_rate TURNS WORK: on each CPU two threads take turns through pipes, and work between them; how long all took.
 *
 * It writes a line once its threads are there, begins when it can read a byte, writes the seconds, and ends at the
 * end of what it reads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 1024

struct side {
    int cpu, in, out;
};

static long turns, work;
static pthread_barrier_t ready, done;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *take_turns(void *given)
{
    struct side *side = given;
    volatile uint64_t state = 1;
    cpu_set_t set;
    char byte = 0;
    CPU_ZERO(&set);
    CPU_SET(side->cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        abort();
    pthread_barrier_wait(&ready);
    for (long turn = 0; turn < turns; turn++) {
        if (read(side->in, &byte, 1) != 1)
            abort();
        for (long i = 0; i < work; i++)
            state = state * 6364136223846793005u + 1;
        if (write(side->out, &byte, 1) != 1)
            abort();
    }
    pthread_barrier_wait(&done);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct side sides[2 * MOST];
    static int starts[MOST];
    cpu_set_t allowed;
    char byte = 0;
    int pairs = 0;
    if (argc != 3 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 1;
    turns = atol(argv[1]);
    work = atol(argv[2]);
    for (int cpu = 0; cpu < MOST && cpu < CPU_SETSIZE; cpu++) {
        int there[2], back[2];
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        if (pipe(there) != 0 || pipe(back) != 0)
            return 1;
        sides[2 * pairs] = (struct side){cpu, there[0], back[1]};
        sides[2 * pairs + 1] = (struct side){cpu, back[0], there[1]};
        starts[pairs++] = there[1];
    }
    pthread_barrier_init(&ready, NULL, 2 * (unsigned)pairs + 1);
    pthread_barrier_init(&done, NULL, 2 * (unsigned)pairs + 1);
    for (int i = 0; i < 2 * pairs; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, take_turns, &sides[i]) != 0)
            return 1;
    }
    pthread_barrier_wait(&ready);
    puts("ready");
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        return 1;
    double begin = now();
    for (int i = 0; i < pairs; i++)
        if (write(starts[i], &byte, 1) != 1)
            return 1;
    pthread_barrier_wait(&done);
    printf("%.9f\n", now() - begin);
    fflush(stdout);
    return read(0, &byte, 1) != 0;
}
