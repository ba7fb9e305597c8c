/* A program as BenchCast's README has one patched: initialize_barrier before the loop, call_barrier in it.

   patched ITERATIONS [LOG]: appends the time of each call to LOG. Two threads of it meet at a barrier of their own first. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int initialize_barrier();
void call_barrier();

static pthread_barrier_t own;
static int came;

static void *meet(void *unused)
{
    usleep(20000);
    __atomic_store_n(&came, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&own);
    return unused;
}

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
    pthread_t other;
    FILE *log = argc > 2 ? fopen(argv[2], "a") : NULL;
    if (log != NULL)
        setbuf(log, NULL);
    pthread_barrier_init(&own, NULL, 2);
    pthread_create(&other, NULL, meet, NULL);
    pthread_barrier_wait(&own);
    if (!came)
        return 9; /* our own barrier did not hold us */
    pthread_join(other, NULL);
    initialize_barrier();
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (log != NULL)
            fprintf(log, "%llu\n", (unsigned long long)now(CLOCK_MONOTONIC));
        call_barrier();
        for (uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + 1000000u; now(CLOCK_PROCESS_CPUTIME_ID) < end;)
            continue;
    }
    return log != NULL && fclose(log) != 0;
}
