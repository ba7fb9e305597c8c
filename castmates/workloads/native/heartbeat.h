/* The heartbeat of Castmates for C and C++ programs: one header, no dependencies, POSIX with GNU atomics.

   The runner names a shared file in CASTMATES_HEARTBEAT; the layout is described in docs/heartbeat.md.
   Without that variable cm_heartbeat_open returns NULL, and every call on NULL does nothing. */
#ifndef CASTMATES_HEARTBEAT_H
#define CASTMATES_HEARTBEAT_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CM_HEARTBEAT_VARIABLE "CASTMATES_HEARTBEAT"
#define CM_HEARTBEAT_VERSION 1u

enum cm_state { CM_STARTING = 0, CM_READY = 1, CM_FINISHED = 2, CM_FAILED = 3 };

struct cm_record {
    uint64_t ns;    /* CLOCK_MONOTONIC */
    uint64_t units; /* so far */
};

struct cm_file {
    char magic[8];
    uint32_t version;
    uint32_t capacity;
    uint32_t state;
    uint32_t pid;
    uint64_t head; /* records ever written */
    uint64_t reserved[4];
    struct cm_record records[]; /* `capacity` of them */
};

typedef struct {
    struct cm_file *file;
    uint64_t head;
    uint64_t units;
    uint64_t last_slot;
} cm_heartbeat;

static inline int cm_heartbeat_fits(const struct cm_file *file, uint64_t size)
{
    const uint64_t header = offsetof(struct cm_file, records);
    return size >= header && memcmp(file->magic, "CASTBEAT", 8) == 0 && file->version == CM_HEARTBEAT_VERSION &&
           file->capacity >= 2 && (file->capacity & (file->capacity - 1)) == 0 &&
           size == header + sizeof(struct cm_record) * (uint64_t)file->capacity;
}

/* Map the whole file with all its pages present, so that no beat meets a page fault. */
static inline struct cm_file *cm_heartbeat_map(const char *path)
{
    struct stat status;
    void *memory = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "Cannot open the heartbeat file %s: %s.\n", path, strerror(errno));
    } else if (!cm_heartbeat_fits((struct cm_file *)memory, (uint64_t)status.st_size)) {
        fprintf(stderr, "%s is not a whole Castmates heartbeat file of version %u.\n", path, CM_HEARTBEAT_VERSION);
        munmap(memory, (size_t)status.st_size);
        memory = MAP_FAILED;
    }
    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : (struct cm_file *)memory;
}

/* Open the file that the runner named; NULL, after a sentence on stderr, when that file is of no use. */
static inline cm_heartbeat *cm_heartbeat_open(void)
{
    static cm_heartbeat handle;
    const char *path = getenv(CM_HEARTBEAT_VARIABLE);
    if (path == NULL || *path == '\0')
        return NULL;
    handle.file = cm_heartbeat_map(path);
    if (handle.file == NULL)
        return NULL;
    handle.last_slot = handle.file->capacity - 1;
    handle.head = handle.file->head;
    /* Where another process wrote before, the count goes on. */
    handle.units = handle.head == 0 ? 0 : handle.file->records[(handle.head - 1) & handle.last_slot].units;
    __atomic_store_n(&handle.file->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
    return &handle;
}

static inline void cm_enter(cm_heartbeat *hb, enum cm_state state)
{
    if (hb != NULL)
        __atomic_store_n(&hb->file->state, (uint32_t)state, __ATOMIC_RELEASE);
}

static inline void cm_ready(cm_heartbeat *hb) { cm_enter(hb, CM_READY); }
static inline void cm_finished(cm_heartbeat *hb) { cm_enter(hb, CM_FINISHED); }
static inline void cm_failed(cm_heartbeat *hb) { cm_enter(hb, CM_FAILED); }

static inline uint64_t cm_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Report that this many more units are done; one thread at a time may call it. */
static inline void cm_beat(cm_heartbeat *hb, uint64_t units)
{
    if (hb == NULL)
        return;
    struct cm_record *record = &hb->file->records[hb->head & hb->last_slot];
    hb->units += units;
    /* The last head must be seen before this slot changes: that is how a reader notices an overwrite. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&record->ns, cm_now(), __ATOMIC_RELAXED);
    __atomic_store_n(&record->units, hb->units, __ATOMIC_RELAXED);
    __atomic_store_n(&hb->file->head, ++hb->head, __ATOMIC_RELEASE);
}

#endif
