/* bandwidth: the dial for memory bandwidth: reads and writes a set that no cache holds, at a held rate. */
#include "kernel.h"

#include "vectors.h"

#define BANDWIDTH_BLOCK_BYTES 4096u
#define BANDWIDTH_PER_BLOCK (BANDWIDTH_BLOCK_BYTES / sizeof(double))
#define BANDWIDTH_KIB_PER_BLOCK (BANDWIDTH_BLOCK_BYTES / 1024)

/* A block is either one that is read, and then its content stays, or one that is written. */
struct bandwidth {
    double *memory;
    uint64_t blocks;
    unsigned writes; /* per cent of the blocks */
    uint64_t at;     /* the next block */
    uint64_t pass;
    uint64_t sum; /* of all that was read */
};

static double bandwidth_first(uint64_t i) { return (double)(i % 1021); }
static double bandwidth_value(uint64_t pass) { return (double)(3 + pass % 8); }

/* Of any hundred blocks in a row `writes` are written, evenly spread. */
static int bandwidth_is_written(uint64_t block, unsigned writes) { return block * writes % 100 + writes >= 100; }

static void *bandwidth_prepare(const cm_options *options, unsigned thread)
{
    (void)thread;
    struct bandwidth *s = cm_state(sizeof *s);
    double *memory = cm_allocate(cm_share(options), options->huge);
    if (s == NULL || memory == NULL)
        return NULL;
    s->memory = memory;
    s->blocks = cm_share(options) / BANDWIDTH_BLOCK_BYTES;
    s->writes = options->writes;
    for (uint64_t i = 0; i < s->blocks * BANDWIDTH_PER_BLOCK; i++)
        memory[i] = bandwidth_is_written(i / BANDWIDTH_PER_BLOCK, s->writes) ? bandwidth_value(7) : bandwidth_first(i);
    return s;
}

/* The stores go past the caches, so that a byte written is a byte moved, and no line is fetched before. */
static void bandwidth_write_block(double *block, double all)
{
    cm_vector *to = (cm_vector *)block;
    const cm_vector lanes = cm_all_lanes(all);
    CM_OVER_VECTORS (i, BANDWIDTH_PER_BLOCK)
        cm_store_past(&to[i], lanes);
}

static void bandwidth_work(void *state, uint64_t units)
{
    struct bandwidth *s = state;
    for (uint64_t left = units / BANDWIDTH_KIB_PER_BLOCK; left > 0; left--) {
        double *block = s->memory + s->at * BANDWIDTH_PER_BLOCK;
        if (bandwidth_is_written(s->at, s->writes))
            bandwidth_write_block(block, bandwidth_value(s->pass));
        else
            s->sum += cm_sum(block, BANDWIDTH_PER_BLOCK);
        if (++s->at == s->blocks) {
            s->at = 0;
            s->pass++;
        }
    }
    cm_stores_arrive();
}

static void bandwidth_restart(void *state) { (void)state; }

static const char *bandwidth_verify(void *state)
{
    const struct bandwidth *s = state;
    uint64_t whole = 0, part = 0;
    for (uint64_t block = 0; block < s->blocks; block++) {
        double written = bandwidth_value(block < s->at ? s->pass : s->pass + 7);
        part = block == s->at ? whole : part;
        for (uint64_t i = block * BANDWIDTH_PER_BLOCK; i < (block + 1) * BANDWIDTH_PER_BLOCK; i++) {
            if (!bandwidth_is_written(block, s->writes))
                whole += (uint64_t)bandwidth_first(i);
            else if (s->memory[i] != written)
                return "an element is not what its last pass had to write";
        }
    }
    return s->sum == s->pass * whole + part ? NULL : "the sum of what was read is not that of the blocks";
}

static const cm_kernel bandwidth_kernel = {
    .name = "bandwidth",
    .does = "The dial for memory bandwidth: goes in order over a working set that should be far larger than the "
            "last-level cache, and reads or writes (past the caches) whole blocks of 4 KiB, at the rate that --rate "
            "gives.",
    .unit = "one KiB read or written",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_WRITES | CM_HUGE,
    .defaults = {.bytes = 256u << 20},
    .bytes_per_unit = 1024,
    .step = BANDWIDTH_KIB_PER_BLOCK,
    .prepare = bandwidth_prepare,
    .work = bandwidth_work,
    .restart = bandwidth_restart,
    .verify = bandwidth_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&bandwidth_kernel, argc, argv); }
#endif
