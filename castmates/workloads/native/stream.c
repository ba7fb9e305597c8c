/* stream: reads and writes arrays in order, without end: an antagonist that wants memory bandwidth. */
#include "kernel.h"

#include "vectors.h"

#define STREAM_BYTES_PER_STEP (3u << 20)
#define STREAM_SHIFTS 8 /* copies come from a place that moves by a line with every pass */

enum stream_mode { STREAM_TRIAD, STREAM_COPY, STREAM_READ, STREAM_WRITE, STREAM_NONTEMPORAL };

struct stream {
    double *a, *b, *c;
    uint64_t elements; /* of each array, or of the only one; whole grains */
    uint64_t beyond;   /* elements of b that follow these */
    uint64_t per_step; /* elements */
    uint64_t at;       /* the next element */
    uint64_t pass;     /* over the arrays; what is written changes with it, so that a stale element is seen */
    uint64_t sum;      /* of all that was read */
    enum stream_mode mode;
};

static const char *const stream_modes[] = {"triad", "copy", "read", "write", "nontemporal", NULL}; /* as the enum */
static const unsigned stream_arrays[] = {3, 2, 1, 1, 3}; /* which share the memory out */

static double stream_scale(uint64_t pass) { return (double)(3 + pass % 8); }
static double stream_first_b(uint64_t i) { return (double)(i % 1021); }
static double stream_first_c(uint64_t i) { return (double)(i * 7 % 1019); }
static uint64_t stream_shift(uint64_t pass) { return pass % STREAM_SHIFTS * CM_PER_LINE; }

#define STREAM_PIECE static inline __attribute__((always_inline)) void

STREAM_PIECE stream_triad(struct stream *s, uint64_t elements)
{
    cm_vector *restrict a = (cm_vector *)(s->a + s->at);
    const cm_vector *restrict b = (const cm_vector *)(s->b + s->at), *restrict c = (const cm_vector *)(s->c + s->at);
    const cm_vector factor = cm_all_lanes(stream_scale(s->pass));
    CM_OVER_VECTORS (i, elements)
        cm_store(&a[i], b[i] + factor * c[i]);
}

STREAM_PIECE stream_copy(struct stream *s, uint64_t elements)
{
    cm_vector *restrict a = (cm_vector *)(s->a + s->at);
    const cm_vector *restrict b = (const cm_vector *)(s->b + s->at + stream_shift(s->pass));
    CM_OVER_VECTORS (i, elements)
        cm_store(&a[i], b[i]);
}

STREAM_PIECE stream_read_only(struct stream *s, uint64_t elements) { s->sum += cm_sum(s->b + s->at, elements); }

STREAM_PIECE stream_write_only(struct stream *s, uint64_t elements)
{
    cm_vector *a = (cm_vector *)(s->a + s->at);
    const cm_vector value = cm_all_lanes(stream_scale(s->pass));
    CM_OVER_VECTORS (i, elements)
        cm_store(&a[i], value);
}

STREAM_PIECE stream_nontemporal(struct stream *s, uint64_t elements)
{
    cm_vector *restrict a = (cm_vector *)(s->a + s->at);
    const cm_vector *restrict b = (const cm_vector *)(s->b + s->at), *restrict c = (const cm_vector *)(s->c + s->at);
    const cm_vector factor = cm_all_lanes(stream_scale(s->pass));
    CM_OVER_VECTORS (i, elements)
        cm_store_past(&a[i], b[i] + factor * c[i]);
}

/* What an element of `a` is after this pass. */
static double stream_expected(const struct stream *s, uint64_t i, uint64_t pass)
{
    if (s->mode == STREAM_COPY)
        return stream_first_b(i + stream_shift(pass));
    if (s->mode == STREAM_WRITE)
        return stream_scale(pass);
    return stream_first_b(i) + stream_scale(pass) * stream_first_c(i);
}

static void stream_lay_out(struct stream *s, double *memory, uint64_t bytes, const char *mode)
{
    while (strcmp(mode, stream_modes[s->mode]) != 0)
        s->mode++;
    unsigned arrays = stream_arrays[s->mode];
    s->beyond = s->mode == STREAM_COPY ? STREAM_SHIFTS * CM_PER_LINE : 0;
    s->elements = (bytes / sizeof(double) - s->beyond) / arrays / CM_GRAIN * CM_GRAIN;
    s->per_step = STREAM_BYTES_PER_STEP / sizeof(double) / arrays;
    s->a = s->mode == STREAM_READ ? NULL : memory;
    s->b = s->mode == STREAM_READ ? memory : arrays > 1 ? memory + s->elements : NULL;
    s->c = arrays == 3 ? s->b + s->elements : NULL;
}

static void *stream_prepare(const cm_options *options, unsigned thread)
{
    (void)thread;
    struct stream *s = cm_state(sizeof *s);
    double *memory = cm_allocate(cm_share(options), options->huge);
    if (s == NULL || memory == NULL)
        return NULL;
    stream_lay_out(s, memory, cm_share(options), options->mode);
    for (uint64_t i = 0; s->b != NULL && i < s->elements + s->beyond; i++)
        s->b[i] = stream_first_b(i);
    for (uint64_t i = 0; s->c != NULL && i < s->elements; i++)
        s->c[i] = stream_first_c(i);
    for (uint64_t i = 0; s->a != NULL && i < s->elements; i++)
        s->a[i] = stream_expected(s, i, 7); /* as the pass before the first one would leave it */
    return s;
}

/* The elements go round as often as it takes; every mode has its own loop, with its piece in it. */
static inline __attribute__((always_inline)) void stream_round(struct stream *s, uint64_t left,
                                                               void (*piece)(struct stream *, uint64_t))
{
    while (left > 0) {
        uint64_t n = s->elements - s->at < left ? s->elements - s->at : left;
        piece(s, n);
        left -= n;
        s->at += n;
        if (s->at == s->elements) {
            s->at = 0;
            s->pass++;
        }
    }
}

static void stream_work(void *state, uint64_t units)
{
    struct stream *s = state;
    uint64_t elements = units / 3 * s->per_step;
    switch (s->mode) {
    case STREAM_TRIAD: stream_round(s, elements, stream_triad); break;
    case STREAM_COPY: stream_round(s, elements, stream_copy); break;
    case STREAM_READ: stream_round(s, elements, stream_read_only); break;
    case STREAM_WRITE: stream_round(s, elements, stream_write_only); break;
    case STREAM_NONTEMPORAL:
        stream_round(s, elements, stream_nontemporal);
        cm_stores_arrive();
        break;
    }
}

static void stream_restart(void *state) { (void)state; }

static const char *stream_verify_sum(const struct stream *s)
{
    uint64_t whole = 0, part = 0;
    for (uint64_t i = 0; i < s->elements; i++) {
        part = i == s->at ? whole : part;
        whole += (uint64_t)stream_first_b(i);
    }
    return s->sum == s->pass * whole + part ? NULL : "the sum of what was read is not that of the array";
}

static const char *stream_verify(void *state)
{
    const struct stream *s = state;
    if (s->mode == STREAM_READ)
        return stream_verify_sum(s);
    for (uint64_t i = 0; i < s->elements; i++)
        if (s->a[i] != stream_expected(s, i, i < s->at ? s->pass : s->pass + 7))
            return "an element is not what its last pass had to write";
    return NULL;
}

static const cm_kernel stream_kernel = {
    .name = "stream",
    .does = "Reads and writes arrays in order, which takes memory bandwidth: triad (a = b + s*c), copy (a = b), read, "
            "write, or nontemporal (the triad with stores past the caches).",
    .unit = "one MiB read or written (the read that fetches a line before it is written is not counted)",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE | CM_MODE,
    .defaults = {.bytes = 64u << 20},
    .bytes_per_unit = 1u << 20,
    .modes = stream_modes,
    .step = 3,
    .prepare = stream_prepare,
    .work = stream_work,
    .restart = stream_restart,
    .verify = stream_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&stream_kernel, argc, argv); }
#endif
