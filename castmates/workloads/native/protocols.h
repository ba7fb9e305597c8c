/* The protocols that the load generator speaks: how a request is written, and what the whole answer must be.

   The value of a key is a piece of one text of random letters, so that every answer can be held against it, byte by
   byte. A write stores the value that is there already: whichever comes first, a read has one right answer. */
#ifndef CASTMATES_PROTOCOLS_H
#define CASTMATES_PROTOCOLS_H

#include "memory.h"

#define CM_PLACES 65536u   /* at which the value of a key can begin */
#define CM_HEAD 512u       /* bytes that a request, or an answer, takes besides the value; at most */

enum cm_answer { CM_WRONG = -1, CM_PART = 0 }; /* or the bytes of the whole answer */

typedef struct {
    const char *text; /* CM_PLACES letters, and a value's more */
    unsigned length;  /* of a value */
} cm_values;

typedef struct {
    const char *name;
    const char *package; /* of Debian */
    const char *program;
    int writes; /* whether it can be asked to store a value */
    unsigned (*request)(char *into, const cm_values *values, unsigned key, int write);
    long (*answer)(const char *from, unsigned size, const cm_values *values, unsigned key, int write);
} cm_protocol;

static inline cm_values cm_make_values(unsigned length)
{
    uint64_t seed = 88172645463325252u;
    char *text = malloc(CM_PLACES + length);
    for (unsigned i = 0; text != NULL && i < CM_PLACES + length; i++)
        text[i] = (char)('a' + cm_random(&seed) % 26);
    return (cm_values){text, length};
}

static inline const char *cm_value(const cm_values *values, unsigned key)
{
    return values->text + key * 40503u % CM_PLACES; /* odd, so that keys up to CM_PLACES have different places */
}

/* Hold an answer against what it must be: `head`, the value of the key (or none), `tail`. */
static inline long cm_hold(const char *from, unsigned size, const char *head, const char *value, unsigned length,
                           const char *tail)
{
    const struct {
        const char *bytes;
        unsigned count;
    } parts[] = {{head, (unsigned)strlen(head)}, {value, length}, {tail, (unsigned)strlen(tail)}};
    unsigned at = 0;
    for (unsigned i = 0; i < 3; i++) {
        unsigned there = size - at < parts[i].count ? size - at : parts[i].count;
        if (there > 0 && memcmp(from + at, parts[i].bytes, there) != 0)
            return CM_WRONG;
        at += there;
        if (there < parts[i].count)
            return CM_PART;
    }
    return at == size ? (long)at : CM_WRONG; /* nobody asked for more */
}

static unsigned memcached_request(char *into, const cm_values *values, unsigned key, int write)
{
    if (!write)
        return (unsigned)sprintf(into, "get k%u\r\n", key);
    unsigned head = (unsigned)sprintf(into, "set k%u 0 0 %u\r\n", key, values->length);
    memcpy(into + head, cm_value(values, key), values->length);
    memcpy(into + head + values->length, "\r\n", 2);
    return head + values->length + 2;
}

static long memcached_answer(const char *from, unsigned size, const cm_values *values, unsigned key, int write)
{
    char head[64];
    if (write)
        return cm_hold(from, size, "STORED\r\n", "", 0, "");
    snprintf(head, sizeof head, "VALUE k%u 0 %u\r\n", key, values->length);
    return cm_hold(from, size, head, cm_value(values, key), values->length, "\r\nEND\r\n");
}

static unsigned redis_request(char *into, const cm_values *values, unsigned key, int write)
{
    char name[16];
    int length = snprintf(name, sizeof name, "k%u", key);
    if (!write)
        return (unsigned)sprintf(into, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", length, name);
    unsigned head =
        (unsigned)sprintf(into, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%u\r\n", length, name, values->length);
    memcpy(into + head, cm_value(values, key), values->length);
    memcpy(into + head + values->length, "\r\n", 2);
    return head + values->length + 2;
}

static long redis_answer(const char *from, unsigned size, const cm_values *values, unsigned key, int write)
{
    char head[32];
    if (write)
        return cm_hold(from, size, "+OK\r\n", "", 0, "");
    snprintf(head, sizeof head, "$%u\r\n", values->length);
    return cm_hold(from, size, head, cm_value(values, key), values->length, "\r\n");
}

static unsigned nginx_request(char *into, const cm_values *values, unsigned key, int write)
{
    (void)values;
    (void)write;
    return (unsigned)sprintf(into, "GET /%u HTTP/1.1\r\nHost: castmates\r\n\r\n", key);
}

/* The status must be 200; of the header only the end matters, as it has a date: all that follows is the value. */
static long nginx_answer(const char *from, unsigned size, const cm_values *values, unsigned key, int write)
{
    static const char status[] = "HTTP/1.1 200 ";
    unsigned known = size < sizeof status - 1 ? size : (unsigned)sizeof status - 1;
    (void)write;
    if (memcmp(from, status, known) != 0)
        return CM_WRONG;
    const char *end = memmem(from, size, "\r\n\r\n", 4);
    if (end == NULL)
        return size < CM_HEAD ? CM_PART : CM_WRONG;
    unsigned head = (unsigned)(end - from) + 4;
    long body = cm_hold(from + head, size - head, "", cm_value(values, key), values->length, "");
    return body > 0 ? (long)head + body : body;
}

static const cm_protocol cm_protocols[] = {
    {"memcached", "memcached", "memcached", 1, memcached_request, memcached_answer},
    {"redis", "redis-server", "redis-server", 1, redis_request, redis_answer},
    {"nginx", "nginx", "nginx", 0, nginx_request, nginx_answer},
};
#define CM_PROTOCOLS (sizeof cm_protocols / sizeof *cm_protocols)

#endif
