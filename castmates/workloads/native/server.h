/* The server of a service: started on its CPUs with nothing but memory to keep, and ended with us. */
#ifndef CASTMATES_SERVER_H
#define CASTMATES_SERVER_H

#include <ftw.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "program.h"
#include "protocols.h"

#define CM_WORDS 24
#define CM_ENDS_WITHIN 200 /* hundredths of a second that a server has to end by itself */

typedef struct {
    pid_t pid; /* 0 where it is not ours */
    char folder[96];
    char socket[108]; /* as long as such a path may be */
    char words[CM_WORDS][160]; /* its command line */
    unsigned count;            /* of them */
    unsigned threads;
    cpu_set_t cpus;
} cm_server;

static inline void cm_words(cm_server *server, unsigned count, const char *const *words)
{
    for (unsigned i = 0; i < count && server->count < CM_WORDS; i++)
        snprintf(server->words[server->count++], sizeof *server->words, "%s", words[i]);
}
#define CM_ADD(server, ...)                                           \
    do {                                                              \
        const char *const words[] = {__VA_ARGS__};                    \
        cm_words(server, (unsigned)(sizeof words / sizeof *words), words); \
    } while (0)

/* A page for each key: nginx has no memory to be filled. False, with a sentence, where it cannot be written. */
static inline int cm_write_pages(const cm_server *server, const cm_values *values, unsigned keys)
{
    char path[160];
    snprintf(path, sizeof path, "%s/pages", server->folder);
    int made = mkdir(path, 0700) == 0;
    for (unsigned key = 0; made && key < keys; key++) {
        snprintf(path, sizeof path, "%s/pages/%u", server->folder, key);
        FILE *page = fopen(path, "w");
        made = page != NULL && fwrite(cm_value(values, key), 1, values->length, page) == values->length;
        made = page != NULL && fclose(page) == 0 && made;
    }
    if (!made)
        fprintf(stderr, "openloop: cannot write %s: %s\n", path, strerror(errno));
    return made;
}

static inline int cm_configure_nginx(const cm_server *server, const cm_values *values, unsigned keys)
{
    char path[160];
    snprintf(path, sizeof path, "%s/nginx.conf", server->folder);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "openloop: cannot write %s: %s\n", path, strerror(errno));
        return 0;
    }
    const char *d = server->folder;
    fprintf(file, "daemon off;\nworker_processes %u;\npid %s/pid;\nerror_log stderr error;\n", server->threads, d);
    if (geteuid() == 0)
        fprintf(file, "user root;\n"); /* it is ours alone, and the folder is too */
    fprintf(file, "events { worker_connections 1024; }\nhttp {\n access_log off;\n keepalive_requests 1000000000;\n");
    fprintf(file, " keepalive_timeout 1d;\n open_file_cache max=%u inactive=1d;\n open_file_cache_valid 1d;\n",
            keys + 16);
    static const char *const kinds[] = {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        fprintf(file, " %s_temp_path %s/%s;\n", kinds[i], d, kinds[i]);
    fprintf(file, " server { listen unix:%s; location / { root %s/pages; } }\n}\n", server->socket, d);
    return fclose(file) == 0 && cm_write_pages(server, values, keys);
}

/* The command line of a server that keeps nothing on a disk and listens to its socket alone. */
static inline int cm_command(cm_server *server, const cm_protocol *protocol, const cm_values *values, unsigned keys)
{
    char text[160], threads[16];
    snprintf(threads, sizeof threads, "%u", server->threads);
    CM_ADD(server, protocol->program);
    if (strcmp(protocol->name, "memcached") == 0) {
        /* Memory enough that nothing is thrown out: items have a head, and slabs are up to a quarter too large. */
        uint64_t megabytes = 64 + keys * (uint64_t)(values->length + 128) * 3 / 2 / 1000000;
        snprintf(text, sizeof text, "%llu", (unsigned long long)megabytes);
        CM_ADD(server, "-s", server->socket, "-a", "0700", "-U", "0", "-m", text, "-t", threads);
        if (geteuid() == 0)
            CM_ADD(server, "-u", "root");
        return 1;
    }
    if (strcmp(protocol->name, "redis") == 0) {
        CM_ADD(server, "--port", "0", "--unixsocket", server->socket, "--unixsocketperm", "700", "--save", "",
               "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning", "--dir", server->folder);
        return 1;
    }
    snprintf(text, sizeof text, "%s/nginx.conf", server->folder);
    CM_ADD(server, "-e", "stderr", "-p", server->folder, "-c", text);
    return cm_configure_nginx(server, values, keys);
}

/* In the child: become the server. Returns only where there is no such program. */
static inline void cm_become(cm_server *server, pid_t parent)
{
    char *argv[CM_WORDS + 1] = {NULL}, path[176];
    for (unsigned i = 0; i < server->count; i++)
        argv[i] = server->words[i];
    sched_setaffinity(0, sizeof server->cpus, &server->cpus);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    execvp(argv[0], argv);
    snprintf(path, sizeof path, "/usr/sbin/%s", server->words[0]); /* where nginx is, out of the PATH of some */
    execv(path, argv);
}

/* Start it; false, with a sentence, where that does not work. Whether it listens is seen when we connect. */
static inline int cm_start_server(cm_server *server, const cm_protocol *protocol)
{
    int ends[2], error = 0;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0 || (server->pid = fork()) < 0) {
        fprintf(stderr, "openloop: cannot start %s: %s\n", protocol->program, strerror(errno));
        server->pid = 0;
        return 0;
    }
    if (server->pid == 0) {
        cm_become(server, parent);
        error = errno;
        if (write(ends[1], &error, sizeof error) < 0)
            _exit(126);
        _exit(127);
    }
    close(ends[1]);
    int failed = read(ends[0], &error, sizeof error) == sizeof error;
    close(ends[0]);
    if (!failed)
        return 1;
    fprintf(stderr, "openloop: %s cannot be started (%s): install it (apt-get install %s)\n", protocol->program,
            strerror(error), protocol->package);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    return 0;
}

/* Whether it has ended although nobody asked it to. */
static inline int cm_server_ended(cm_server *server)
{
    if (server->pid == 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid)
        return 0;
    server->pid = 0;
    return 1;
}

/* Make a folder for its socket; false, with a sentence, where the path is too long for one. */
static inline int cm_server_folder(cm_server *server)
{
    const char *temporary = getenv("TMPDIR");
    temporary = temporary != NULL && *temporary != '\0' ? temporary : "/tmp";
    int length = snprintf(server->folder, sizeof server->folder, "%s/service-XXXXXX", temporary);
    if (length >= (int)sizeof server->folder) {
        fprintf(stderr, "openloop: TMPDIR (%s) is too long for the path of a socket: set a shorter one\n", temporary);
        server->folder[0] = '\0';
        return 0;
    }
    if (mkdtemp(server->folder) == NULL) {
        fprintf(stderr, "openloop: cannot make a folder in %s: %s\n", temporary, strerror(errno));
        server->folder[0] = '\0';
        return 0;
    }
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->folder);
    return 1;
}

static inline int cm_remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

/* Ask it to end, wait for that, and remove what it leaves. */
static inline void cm_end_server(cm_server *server)
{
    const struct timespec nap = {0, 10000000};
    if (server->pid != 0) {
        kill(server->pid, SIGTERM);
        for (int i = 0; i < CM_ENDS_WITHIN && server->pid != 0; i++)
            if (!cm_server_ended(server))
                nanosleep(&nap, NULL);
        if (server->pid != 0) {
            kill(server->pid, SIGKILL);
            waitpid(server->pid, NULL, 0);
        }
    }
    if (server->folder[0] != '\0')
        nftw(server->folder, cm_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
