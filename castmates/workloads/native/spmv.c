/* spmv: y = A x with a sparse matrix in compressed rows: two streams and a random read for each entry. */
#include "kernel.h"
#include "passes.h"

#define SPMV_FEWEST 4u  /* entries of a row */
#define SPMV_LENGTHS 9u /* a row has SPMV_FEWEST to SPMV_FEWEST + SPMV_LENGTHS - 1 of them: 8 on average */
#define SPMV_ROW (8u * 12u + 3u * 8u)

struct spmv {
    double *value, *x, *y;
    uint64_t *begin; /* of each row among the entries; one more for the end */
    uint32_t *column;
    uint64_t rows;
    uint64_t at;   /* the next row */
    uint64_t pass; /* the scale changes with it, so that a stale row is seen */
};

static double spmv_scale(uint64_t pass) { return (double)(1 + pass % 8); }
static uint64_t spmv_length(uint64_t row) { return SPMV_FEWEST + cm_mix(row + 1) % SPMV_LENGTHS; }
static double spmv_x(uint64_t column) { return (double)(1 + column % 1021); }
static double spmv_value(uint64_t entry) { return (double)(1 + entry % 13); }
static uint32_t spmv_column(uint64_t rows, uint64_t entry) { return (uint32_t)cm_place(cm_mix(~entry), rows); }

/* What a row times x is without a scale, from the rules alone; `entry` is the row's first one. */
static double spmv_expected(uint64_t rows, uint64_t row, uint64_t entry)
{
    double sum = 0;
    for (uint64_t end = entry + spmv_length(row); entry < end; entry++)
        sum += spmv_value(entry) * spmv_x(spmv_column(rows, entry));
    return sum;
}

static int spmv_allocate(struct spmv *s, uint64_t entries, int huge)
{
    uint64_t bytes = entries * (sizeof(double) + sizeof(uint32_t)) + (3 * s->rows + 1) * sizeof(double);
    s->value = cm_allocate(bytes, huge);
    if (s->value == NULL)
        return 0;
    s->x = s->value + entries;
    s->y = s->x + s->rows;
    s->begin = (uint64_t *)(s->y + s->rows);
    s->column = (uint32_t *)(s->begin + s->rows + 1);
    return 1;
}

static void *spmv_prepare(const cm_options *options, unsigned thread)
{
    struct spmv *s = cm_state(sizeof *s);
    uint64_t entries = 0;
    (void)thread;
    if (s == NULL)
        return NULL;
    s->rows = cm_share(options) / SPMV_ROW;
    s->rows = s->rows > UINT32_MAX ? UINT32_MAX : s->rows;
    for (uint64_t row = 0; row < s->rows; row++)
        entries += spmv_length(row);
    if (!spmv_allocate(s, entries, options->huge))
        return NULL;
    for (uint64_t entry = 0; entry < entries; entry++) {
        s->value[entry] = spmv_value(entry);
        s->column[entry] = spmv_column(s->rows, entry);
    }
    for (uint64_t row = 0; row < s->rows; row++) {
        s->x[row] = spmv_x(row);
        s->y[row] = spmv_scale(7) * spmv_expected(s->rows, row, s->begin[row]);
        s->begin[row + 1] = s->begin[row] + spmv_length(row);
    }
    return s;
}

/* The element of x that an entry wants: a separate read: several cannot become one that gathers. */
static inline const double *spmv_at(const struct spmv *s, uint64_t entry)
{
    const double *at = &s->x[s->column[entry]];
    CM_PIN(at);
    return at;
}

static __attribute__((noinline)) void spmv_rows(const struct spmv *s, uint64_t from, uint64_t count, double scale)
{
    for (uint64_t row = from; row < from + count; row++) {
        double sum = 0;
        for (uint64_t entry = s->begin[row]; entry < s->begin[row + 1]; entry++)
            sum += s->value[entry] * *spmv_at(s, entry);
        s->y[row] = scale * sum;
    }
}

static void spmv_work(void *state, uint64_t units)
{
    struct spmv *s = state;
    while (units > 0) {
        uint64_t n = s->rows - s->at < units ? s->rows - s->at : units;
        spmv_rows(s, s->at, n, spmv_scale(s->pass));
        units -= n;
        s->at += n;
        if (s->at == s->rows) {
            s->at = 0;
            s->pass++;
        }
    }
}

static void spmv_restart(void *state) { (void)state; }

/* All numbers are whole and small, so that the order of the sum does not matter. */
static const char *spmv_verify(void *state)
{
    const struct spmv *s = state;
    uint64_t entry = 0;
    for (uint64_t row = 0; row < s->rows; row++) {
        double scale = spmv_scale(row < s->at ? s->pass : s->pass + 7);
        if (s->y[row] != scale * spmv_expected(s->rows, row, entry))
            return "an element of the product is not that of its last pass";
        entry += spmv_length(row);
    }
    return NULL;
}

static const cm_kernel spmv_kernel = {
    .name = "spmv",
    .does = "A sparse matrix (compressed rows, random columns) times a vector: memory streams and random reads "
            "together.",
    .unit = "one row of the matrix, 8 entries on average",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 64u << 20, .threads = 1},
    .step = 1,
    .prepare = spmv_prepare,
    .work = spmv_work,
    .restart = spmv_restart,
    .verify = spmv_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&spmv_kernel, argc, argv); }
#endif
