/* The record of requests of an open-loop service for C and C++ programs: one header, no dependencies but heartbeat.h.

   The runner names a shared file in CASTMATES_REQUESTS; docs/services.md describes its layout, and what a program does
   with its schedule when scenes change. Without that variable cm_requests_or_exit returns NULL, and every call on NULL
   does nothing. */
#ifndef CASTMATES_REQUESTS_H
#define CASTMATES_REQUESTS_H

#include "heartbeat.h"

#define CM_REQUESTS_VARIABLE "CASTMATES_REQUESTS"
#define CM_REQUESTS_VERSION 1u

struct cm_request {
    uint64_t due;      /* CLOCK_MONOTONIC ns: when it was to be sent */
    uint64_t sent;     /* 0: it was given up before it was sent */
    uint64_t answered; /* 0: it never was */
};

struct cm_requests_file {
    char magic[8];
    uint32_t version;
    uint32_t capacity;
    uint32_t pid;
    uint32_t reserved;
    uint64_t head;     /* records ever written */
    uint64_t scene;    /* the runner's: how many scenes began */
    uint64_t ended_ns; /* the runner's: when the scene before that ended, for whom it ran */
    uint64_t more[2];
    struct cm_request records[]; /* `capacity` of them */
};

typedef struct {
    struct cm_requests_file *file;
    uint64_t head;
    uint64_t last_slot;
} cm_requests;

static inline int cm_requests_fit(const struct cm_requests_file *file, uint64_t size)
{
    const uint64_t header = offsetof(struct cm_requests_file, records);
    return size >= header && memcmp(file->magic, "CASTREQS", 8) == 0 && file->version == CM_REQUESTS_VERSION &&
           file->capacity >= 2 && (file->capacity & (file->capacity - 1)) == 0 &&
           size == header + sizeof(struct cm_request) * (uint64_t)file->capacity;
}

/* Open the file that the runner named; NULL without one. A file that is of no use is an error of the caller. */
static inline cm_requests *cm_requests_or_exit(void)
{
    static cm_requests handle;
    const char *path = getenv(CM_REQUESTS_VARIABLE);
    struct stat status;
    void *memory = MAP_FAILED;
    if (path == NULL || *path == '\0')
        return NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "Cannot open the requests file %s: %s.\n", path, strerror(errno));
        exit(2);
    }
    close(fd);
    if (!cm_requests_fit((struct cm_requests_file *)memory, (uint64_t)status.st_size)) {
        fprintf(stderr, "%s is not a whole Castmates requests file of version %u.\n", path, CM_REQUESTS_VERSION);
        exit(2);
    }
    handle.file = (struct cm_requests_file *)memory;
    handle.last_slot = handle.file->capacity - 1;
    handle.head = handle.file->head;
    __atomic_store_n(&handle.file->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
    return &handle;
}

/* How many scenes have begun. Look at it after the clock: a schedule that goes on over a change would ask for what was
   due while the program was frozen. */
static inline uint64_t cm_requests_scene(const cm_requests *requests)
{
    return requests == NULL ? 0 : __atomic_load_n(&requests->file->scene, __ATOMIC_ACQUIRE);
}

/* When the scene ended that was the last to run before the one that runs now. */
static inline uint64_t cm_requests_ended(const cm_requests *requests)
{
    return requests == NULL ? 0 : __atomic_load_n(&requests->file->ended_ns, __ATOMIC_ACQUIRE);
}

/* Record a request that was answered, or given up (0); one thread at a time may call it. */
static inline void cm_request_done(cm_requests *requests, uint64_t due, uint64_t sent, uint64_t answered)
{
    if (requests == NULL)
        return;
    struct cm_request *record = &requests->file->records[requests->head & requests->last_slot];
    /* As in cm_beat: the last head must be seen before this slot changes. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&record->due, due, __ATOMIC_RELAXED);
    __atomic_store_n(&record->sent, sent, __ATOMIC_RELAXED);
    __atomic_store_n(&record->answered, answered, __ATOMIC_RELAXED);
    __atomic_store_n(&requests->file->head, ++requests->head, __ATOMIC_RELEASE);
}

#endif
