/* pagefault: memory that is mapped, touched page by page and given back, again and again: the kernel's page faults. */
#include "kernel.h"

#include <sys/resource.h>

struct pagefault {
    char *memory; /* NULL between two mappings */
    uint64_t page; /* bytes */
    uint64_t pages, at;
    int huge;
    uint64_t touched, faults; /* of all mappings that were complete */
    int64_t faults_before;    /* of this thread, at the begin of the mapping */
    uint64_t dirty;           /* pages that were not empty at first touch, or lost what was written */
    int error;                /* the errno for which it could not go on */
};

static int64_t pagefault_count(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void *pagefault_prepare(const cm_options *options, unsigned thread)
{
    struct pagefault *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->page = cm_page();
    s->pages = cm_share(options) / s->page;
    s->huge = options->huge;
    return s;
}

static void pagefault_map(struct pagefault *s)
{
    s->faults_before = pagefault_count();
    s->memory = mmap(NULL, s->pages * s->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->memory == MAP_FAILED) {
        s->memory = NULL;
        s->error = errno;
        cm_stopped = 1;
        return;
    }
    madvise(s->memory, s->pages * s->page, s->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a wish: the count shows */
}

static void pagefault_unmap(struct pagefault *s)
{
    for (uint64_t page = 0; page < s->at; page++)
        s->dirty += *(uint64_t *)(s->memory + page * s->page) != page + 1;
    munmap(s->memory, s->pages * s->page);
    s->memory = NULL;
    s->at = 0;
}

static void pagefault_work(void *state, uint64_t units)
{
    struct pagefault *s = state;
    for (; units > 0 && s->error == 0; units--) {
        if (s->memory == NULL)
            pagefault_map(s);
        if (s->memory == NULL)
            return;
        volatile uint64_t *word = (uint64_t *)(s->memory + s->at * s->page);
        s->dirty += *word != 0;
        *word = ++s->at;
        if (s->at == s->pages) {
            s->touched += s->pages;
            s->faults += (uint64_t)(pagefault_count() - s->faults_before);
            pagefault_unmap(s);
        }
    }
}

static void pagefault_restart(void *state) { (void)state; }

static const char *pagefault_verify(void *state)
{
    struct pagefault *s = state;
    if (s->memory != NULL)
        pagefault_unmap(s);
    if (s->error != 0)
        return strerror(s->error);
    if (s->dirty > 0)
        return "a page was not empty at first, or lost what was written";
    return s->huge || s->faults >= s->touched ? NULL : "there were fewer page faults than pages";
}

static const cm_kernel pagefault_kernel = {
    .name = "pagefault",
    .does = "Memory that is mapped, touched once in each page and given back: page faults, the kernel's allocator of "
            "pages and the clearing of pages.",
    .unit = "one page touched, of 4 KiB on most machines",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 4u << 20, .threads = 1},
    .least_pages = 1,
    .pages_per_unit = 1,
    .step = 1,
    .prepare = pagefault_prepare,
    .work = pagefault_work,
    .restart = pagefault_restart,
    .verify = pagefault_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&pagefault_kernel, argc, argv); }
#endif
