/* stencil: a 2D five-point Jacobi sweep from one grid into another: streaming with reuse of three rows. */
#include "kernel.h"

#include "vectors.h"

#define STENCIL_COLUMNS 512u

struct stencil {
    double *from, *into;
    uint64_t rows;
    uint64_t at;    /* the next row */
    uint64_t sweep; /* that is under way; all before it are complete */
};

/* A plane is its own average, so after every sweep, which adds 1, each point is known exactly. */
static double stencil_exact(uint64_t row, uint64_t column, double sweeps)
{
    return (double)(3 * row + 5 * column) + sweeps;
}

static void *stencil_prepare(const cm_options *options, unsigned thread)
{
    struct stencil *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->rows = cm_share(options) / (2 * STENCIL_COLUMNS * sizeof(double));
    s->from = cm_allocate(2 * s->rows * STENCIL_COLUMNS * sizeof(double), options->huge);
    if (s->from == NULL)
        return NULL;
    s->into = s->from + s->rows * STENCIL_COLUMNS;
    for (uint64_t i = 0; i < s->rows * STENCIL_COLUMNS; i++) {
        s->from[i] = stencil_exact(i / STENCIL_COLUMNS, i % STENCIL_COLUMNS, 0);
        s->into[i] = stencil_exact(i / STENCIL_COLUMNS, i % STENCIL_COLUMNS, -1);
    }
    return s;
}

/* A vector that begins at any element. */
typedef double stencil_vector __attribute__((vector_size(CM_WIDTH), may_alias, aligned(sizeof(double))));

static void stencil_border(double *restrict into, const double *restrict from)
{
    for (unsigned c = 0; c < STENCIL_COLUMNS; c++)
        into[c] = from[c] + 1;
}

static inline cm_vector stencil_load(const double *at) { return (cm_vector) * (const stencil_vector *)at; }

/* A vector of points; the vectors are written out: not every compiler would make them of a plain loop. */
static inline void stencil_points(double *into, const double *above, const double *row, const double *below)
{
    cm_vector around = stencil_load(above) + stencil_load(below) + stencil_load(row - 1) + stencil_load(row + 1);
    *(stencil_vector *)into = (stencil_vector)(0.5 * stencil_load(row) + 0.125 * around + 1.0);
}

/* The last vector begins where it ends with the row, and computes some points once more. */
static __attribute__((noinline)) void stencil_row(double *restrict into, const double *restrict above,
                                                  const double *restrict row, const double *restrict below)
{
    const unsigned last = STENCIL_COLUMNS - 1 - CM_LANES;
    into[0] = row[0] + 1;
    for (unsigned c = 1; c < last; c += CM_LANES)
        stencil_points(into + c, above + c, row + c, below + c);
    stencil_points(into + last, above + last, row + last, below + last);
    into[STENCIL_COLUMNS - 1] = row[STENCIL_COLUMNS - 1] + 1;
}

static void stencil_next_sweep(struct stencil *s)
{
    double *swapped = s->from;
    s->from = s->into;
    s->into = swapped;
    s->at = 0;
    s->sweep++;
}

static void stencil_work(void *state, uint64_t units)
{
    struct stencil *s = state;
    for (uint64_t left = units / STENCIL_COLUMNS; left > 0; left--) {
        const double *row = s->from + s->at * STENCIL_COLUMNS;
        if (s->at == 0 || s->at == s->rows - 1)
            stencil_border(s->into + s->at * STENCIL_COLUMNS, row);
        else
            stencil_row(s->into + s->at * STENCIL_COLUMNS, row - STENCIL_COLUMNS, row, row + STENCIL_COLUMNS);
        if (++s->at == s->rows)
            stencil_next_sweep(s);
    }
}

static void stencil_restart(void *state) { (void)state; }

static const char *stencil_verify(void *state)
{
    const struct stencil *s = state;
    for (uint64_t i = 0; i < s->rows * STENCIL_COLUMNS; i++) {
        uint64_t row = i / STENCIL_COLUMNS, column = i % STENCIL_COLUMNS;
        double sweeps = (double)s->sweep;
        if (s->from[i] != stencil_exact(row, column, sweeps))
            return "a point of the grid that is read is not what its sweeps make it";
        if (s->into[i] != stencil_exact(row, column, row < s->at ? sweeps + 1 : sweeps - 1))
            return "a point of the grid that is written is not what its sweeps make it";
    }
    return NULL;
}

static const cm_kernel stencil_kernel = {
    .name = "stencil",
    .does = "Sweeps of a five-point stencil from one grid of doubles into another: memory streams with reuse of rows.",
    .unit = "one point computed, in rows of 512",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 64u << 20, .threads = 1},
    .least_bytes = 3 * 2 * STENCIL_COLUMNS * sizeof(double),
    .step = STENCIL_COLUMNS,
    .prepare = stencil_prepare,
    .work = stencil_work,
    .restart = stencil_restart,
    .verify = stencil_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&stencil_kernel, argc, argv); }
#endif
