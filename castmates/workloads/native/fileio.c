/* fileio: blocks written to a file that has no name, and read back from anywhere in it: the kernel's file system. */
#include "kernel.h"
#include "passes.h"

#define BLOCK (64u << 10)
#define WORDS (BLOCK / sizeof(uint64_t))

struct fileio {
    int file;
    int sync;        /* after each block */
    uint64_t blocks; /* of the file */
    uint64_t at;     /* the next to be written */
    uint64_t pass;
    int error;       /* the errno for which it could not go on */
    uint64_t wrong;  /* blocks that were not what had been written */
    uint64_t *written, *read;
};

static uint64_t fileio_word(uint64_t block, uint64_t pass) { return cm_mix(block << 20 ^ (pass + 1)); }

static void fileio_fill(uint64_t *words, uint64_t block, uint64_t pass)
{
    uint64_t first = fileio_word(block, pass);
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = first + i;
}

static int fileio_failed(struct fileio *s, ssize_t done)
{
    if (done == (ssize_t)BLOCK)
        return 0;
    s->error = done < 0 ? errno : ENOSPC;
    cm_stopped = 1;
    return 1;
}

/* A file without a name is gone with its last user, whatever ends us. */
static int fileio_open(const char *directory)
{
    char path[4096];
    int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    if (snprintf(path, sizeof path, "%s/castmates-fileio-XXXXXX", directory) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    return file;
}

static void fileio_write(struct fileio *s)
{
    fileio_fill(s->written, s->at, s->pass);
    if (fileio_failed(s, pwrite(s->file, s->written, BLOCK, (off_t)(s->at * BLOCK))))
        return;
    if (s->sync && fdatasync(s->file) < 0)
        fileio_failed(s, -1);
    if (++s->at == s->blocks) {
        s->at = 0;
        s->pass++;
    }
}

/* Read a block back, and count it where it is not what was written last. */
static void fileio_check(struct fileio *s, uint64_t block)
{
    if (fileio_failed(s, pread(s->file, s->read, BLOCK, (off_t)(block * BLOCK))))
        return;
    fileio_fill(s->written, block, block < s->at ? s->pass : s->pass - 1);
    s->wrong += memcmp(s->read, s->written, BLOCK) != 0;
}

static void *fileio_prepare(const cm_options *options, unsigned thread)
{
    struct fileio *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->sync = strcmp(options->mode, "fsync") == 0;
    s->blocks = cm_share(options) / BLOCK;
    s->written = cm_allocate(BLOCK, 0);
    s->read = cm_allocate(BLOCK, 0);
    s->file = fileio_open(options->directory);
    if (s->written == NULL || s->read == NULL || s->file < 0)
        return NULL;
    for (uint64_t block = 0; block < s->blocks && s->error == 0; block++)
        fileio_write(s);
    errno = s->error;
    return s->error == 0 ? s : NULL;
}

static void fileio_work(void *state, uint64_t units)
{
    struct fileio *s = state;
    for (; units > 0 && s->error == 0; units--) {
        fileio_write(s);
        if (s->error == 0)
            fileio_check(s, cm_place(cm_mix(s->at * 31 + s->pass), s->blocks));
    }
}

static void fileio_restart(void *state) { (void)state; }

static const char *fileio_verify(void *state)
{
    struct fileio *s = state;
    for (uint64_t block = 0; block < s->blocks && s->error == 0; block++)
        fileio_check(s, block);
    if (s->error != 0)
        return strerror(s->error);
    return s->wrong == 0 ? NULL : "a block that was read is not what had been written";
}

static void fileio_end(void *state) { close(((struct fileio *)state)->file); }

static const char *const fileio_modes[] = {"write", "fsync", NULL};

static const cm_kernel fileio_kernel = {
    .name = "fileio",
    .does = "Blocks of 64 KiB written to a file one after the other (write), each of them forced to the disk (fsync), "
            "and as many read back from anywhere in it: system calls, the page cache, the disk. The file has no name, "
            "so that none is left, whatever ends the program.",
    .unit = "one block of 64 KiB written and one read, so 128 KiB",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_MODE | CM_DIRECTORY,
    .defaults = {.bytes = 16u << 20, .threads = 1},
    .least_bytes = BLOCK,
    .bytes_per_unit = 2 * BLOCK,
    .modes = fileio_modes,
    .step = 1,
    .prepare = fileio_prepare,
    .work = fileio_work,
    .restart = fileio_restart,
    .verify = fileio_verify,
    .end = fileio_end,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&fileio_kernel, argc, argv); }
#endif
