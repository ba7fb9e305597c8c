/* restart_gap: a finite program of a few milliseconds, which writes down when its main began and when it ended. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BYTES (4u << 20)
#define PASSES 6

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
    uint64_t stamps[2] = {now(), 0};
    volatile unsigned char *memory = malloc(BYTES);
    int fd = open(argc > 1 ? argv[1] : "", O_WRONLY | O_APPEND);
    if (memory == NULL || fd < 0)
        return 1;
    for (unsigned pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; i < BYTES; i++)
            memory[i] = (unsigned char)(i + pass);
    stamps[1] = now();
    return write(fd, stamps, sizeof stamps) != sizeof stamps;
}
