/* openloop: an open-loop service: a server, and requests to it that arrive whether or not it keeps up.

   Arrivals are Poisson's: they depend on nothing that the server does. A latency begins when the request was due, so
   what waits for a free connection behind a stall has waited. The schedule ends with each scene (requests.h): what was
   due by its end and not sent is given up, and recorded as that; the next scene begins with no request waiting. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU sets, ppoll */
#endif

#include <fcntl.h>
#include <poll.h>

#include "arrivals.h"
#include "requests.h"
#include "server.h"
#include "openloop_options.h"

#define CM_BEAT_APART_NS 1000000u
#define CM_LOOK_NS 20000000u  /* after which SIGTERM and the runner are looked for, where nothing is due */
#define CM_LISTENS_WITHIN 3000 /* hundredths of a second that a server has until it listens */

typedef struct {
    int fd;
    int busy;
    int write;
    unsigned key;
    uint64_t due, sent;
    unsigned size, at; /* of the request, and how much of it was written */
    unsigned got;      /* bytes of the answer */
    char *out, *in;
} connection;

typedef struct {
    const cm_service_options *options;
    const cm_protocol *protocol;
    cm_heartbeat *hb;
    cm_requests *requests;
    cm_values values;
    cm_server server;
    cm_arrivals arrivals;
    cm_keys keys;
    uint64_t write_seed;
    connection *connections;
    struct pollfd *polled;
    unsigned *free; /* connections */
    unsigned free_count;
    uint64_t scene;
    uint64_t answered, given_up, untold, told_ns;
    int spin;
    int status; /* 0, or that of the exit */
} service;

static void fail(service *s, int status, const char *what, unsigned key)
{
    if (s->status == 0)
        fprintf(stderr, status == 3 ? "openloop: the result is wrong: %s %s (key %u)\n" : "openloop: %s %s\n",
                s->protocol->name, what, key);
    s->status = s->status != 0 ? s->status : status;
}

/* Write as much of the request as the socket takes. */
static void push(service *s, connection *c)
{
    ssize_t done = send(c->fd, c->out + c->at, c->size - c->at, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR)
        fail(s, 1, "closed a connection", c->key);
    c->at += done > 0 ? (unsigned)done : 0;
    s->polled[c - s->connections].events = c->at < c->size ? POLLIN | POLLOUT : POLLIN;
}

static void begin(service *s, connection *c, uint64_t due, unsigned key, int write)
{
    c->busy = 1, c->key = key, c->write = write;
    c->due = due, c->at = c->got = 0;
    c->size = s->protocol->request(c->out, &s->values, key, write);
    c->sent = cm_now();
    push(s, c);
}

static void end(service *s, connection *c)
{
    uint64_t now = cm_now();
    cm_request_done(s->requests, c->due, c->sent, now);
    c->busy = 0;
    s->free[s->free_count++] = (unsigned)(c - s->connections);
    s->answered++, s->untold++;
}

static void pull(service *s, connection *c)
{
    ssize_t got = recv(c->fd, c->in + c->got, CM_HEAD + s->values.length - c->got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fail(s, 1, "closed a connection", c->key);
        return;
    }
    c->got += (unsigned)got;
    long whole = c->busy ? s->protocol->answer(c->in, c->got, &s->values, c->key, c->write) : CM_WRONG;
    if (whole == CM_WRONG) {
        c->in[c->got < 40 ? c->got : 40] = '\0';
        c->in[strcspn(c->in, "\r\n")] = '\0';
        fprintf(stderr, "openloop: an answer begins with '%s'\n", c->in);
        fail(s, 3, "gave another answer than the one that is right", c->key);
    } else if (whole != CM_PART) {
        end(s, c);
    }
}

/* Wait until something can be read or written, but not beyond `until`. */
static void look(service *s, uint64_t now, uint64_t until, int spin)
{
    uint64_t left = until > now && !spin ? until - now : 0;
    struct timespec wait = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    int count = ppoll(s->polled, s->options->connections, &wait, NULL);
    for (unsigned i = 0; count > 0 && i < s->options->connections; i++) {
        short seen = s->polled[i].revents;
        if (seen == 0)
            continue;
        count--;
        if (seen & POLLOUT)
            push(s, &s->connections[i]);
        if (seen & (POLLIN | POLLHUP | POLLERR))
            pull(s, &s->connections[i]);
    }
}

/* Record what was due by then and not sent. */
static void give_up(service *s, uint64_t until)
{
    for (; cm_due(&s->arrivals) <= until; cm_next_arrival(&s->arrivals), s->given_up++)
        cm_request_done(s->requests, cm_due(&s->arrivals), 0, 0);
}

/* Send what is due, as far as connections are free. Frozen amid this, it goes on with none of it. */
static void send_due(service *s, uint64_t now)
{
    while (s->free_count > 0 && cm_due(&s->arrivals) <= now && s->status == 0 &&
           cm_requests_scene(s->requests) == s->scene) {
        unsigned key = cm_next_key(&s->keys);
        int write = s->options->writes > 0 && cm_random(&s->write_seed) % 100 < s->options->writes;
        begin(s, &s->connections[s->free[--s->free_count]], cm_due(&s->arrivals), key, write);
        cm_next_arrival(&s->arrivals);
    }
}

static void run(service *s)
{
    s->scene = cm_requests_scene(s->requests);
    cm_restart_arrivals(&s->arrivals, cm_now());
    while (!cm_stopped && s->status == 0 && (s->options->units == 0 || s->answered < s->options->units)) {
        uint64_t now = cm_now(), scene = cm_requests_scene(s->requests);
        if (scene != s->scene) {
            /* The clock was read before: what is sent below was due in the scene that still ran then. */
            give_up(s, cm_requests_ended(s->requests));
            s->scene = scene;
            cm_restart_arrivals(&s->arrivals, cm_now());
            continue;
        }
        send_due(s, now);
        uint64_t due = s->free_count > 0 ? cm_due(&s->arrivals) : UINT64_MAX;
        look(s, now, due < now + CM_LOOK_NS ? due : now + CM_LOOK_NS, s->spin);
        if (s->untold > 0 && now - s->told_ns >= CM_BEAT_APART_NS) {
            cm_beat(s->hb, s->untold);
            s->untold = 0, s->told_ns = now;
        }
    }
    if (cm_requests_scene(s->requests) == s->scene)
        give_up(s, s->status == 0 ? cm_now() : 0);
    for (unsigned i = 0; i < s->options->connections; i++)
        if (s->connections[i].busy)
            cm_request_done(s->requests, s->connections[i].due, s->connections[i].sent, 0);
    cm_beat(s->hb, s->untold);
}

/* Connect one, as soon as the server listens. */
static int connected(service *s, connection *c)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timespec nap = {0, 10000000};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", s->server.socket);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; c->fd >= 0 && i < CM_LISTENS_WITHIN && !cm_stopped; i++) {
        if (connect(c->fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0;
        if (s->options->connect != NULL)
            break;
        if (cm_server_ended(&s->server)) {
            fail(s, 1, "ended before it listened", 0);
            return 0;
        }
        nanosleep(&nap, NULL);
    }
    fprintf(stderr, "openloop: cannot connect to %s: %s\n", address.sun_path, strerror(errno));
    s->status = 1;
    return 0;
}

static int prepared(service *s)
{
    unsigned count = s->options->connections;
    s->values = cm_make_values(s->options->value);
    s->connections = calloc(count, sizeof *s->connections);
    s->polled = calloc(count, sizeof *s->polled);
    s->free = calloc(count, sizeof *s->free);
    for (unsigned i = 0; s->connections != NULL && i < count; i++) {
        s->connections[i].out = malloc(CM_HEAD + s->options->value);
        s->connections[i].in = malloc(CM_HEAD + s->options->value + 1);
        if (s->connections[i].out == NULL || s->connections[i].in == NULL)
            return 0;
    }
    return s->values.text != NULL && s->connections != NULL && s->polled != NULL && s->free != NULL;
}

/* Give the server all CPUs but the last, which is ours; one is shared. */
static void divide_cpus(service *s)
{
    cpu_set_t allowed, own;
    int last = 0, count;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        CPU_ZERO(&allowed);
    count = CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        last = CPU_ISSET(cpu, &allowed) ? cpu : last;
    s->server.cpus = allowed;
    s->server.threads = count > 1 ? (unsigned)count - 1 : 1;
    s->spin = s->options->spin >= 0 ? s->options->spin : count > 1;
    if (count < 2)
        return;
    CPU_CLR(last, &s->server.cpus);
    CPU_ZERO(&own);
    CPU_SET(last, &own);
    sched_setaffinity(0, sizeof own, &own);
}

static int started(service *s)
{
    if (s->options->connect != NULL) {
        snprintf(s->server.socket, sizeof s->server.socket, "%s", s->options->connect);
        return 1;
    }
    return cm_server_folder(&s->server) && cm_command(&s->server, s->protocol, &s->values, s->options->keys) &&
           cm_start_server(&s->server, s->protocol);
}

/* Ask for every key once: written, so that it is there, or read where the server only reads. */
static void fill(service *s)
{
    for (unsigned key = 0; (key < s->options->keys || s->free_count < s->options->connections) && s->status == 0;) {
        if (cm_stopped)
            return;
        while (s->free_count > 0 && key < s->options->keys)
            begin(s, &s->connections[s->free[--s->free_count]], 0, key++, s->protocol->writes);
        uint64_t now = cm_now();
        look(s, now, now + CM_LOOK_NS, 0);
    }
    s->answered = s->untold = 0;
}

static void report(const service *s)
{
    struct rusage own, server;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &server);
    double ours = (double)own.ru_utime.tv_sec + (double)own.ru_stime.tv_sec +
                  1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
    double its = (double)server.ru_utime.tv_sec + (double)server.ru_stime.tv_sec +
                 1e-6 * (double)(server.ru_utime.tv_usec + server.ru_stime.tv_usec);
    fprintf(stderr, "openloop: %llu requests answered, %llu given up at changes of scene; CPU time: %s %.2f s, "
                    "generator %.2f s (start-up included)\n",
            (unsigned long long)s->answered, (unsigned long long)s->given_up, s->protocol->name, its, ours);
}

int main(int argc, char **argv)
{
    cm_service_options options = cm_service_parse(argc, argv);
    service s = {.options = &options, .protocol = options.protocol, .write_seed = options.seed + 2};
    s.hb = cm_heartbeat_or_exit();
    cm_requests *requests = cm_requests_or_exit();
    s.arrivals = (cm_arrivals){.mean_ns = 1e9 / options.load, .seed = options.seed};
    s.keys = cm_make_keys(options.keys, options.zipf, options.seed + 1);
    cm_stop_on_signals();
    prctl(PR_SET_TIMERSLACK, 1); /* nanosecond: the usual 50 microseconds would be in every latency */
    if (!prepared(&s)) {
        fprintf(stderr, "openloop: cannot have the memory for %u connections\n", options.connections);
        s.status = 1;
    }
    divide_cpus(&s);
    s.status = s.status != 0 || started(&s) ? s.status : 1;
    for (unsigned i = 0; i < options.connections && s.status == 0 && connected(&s, &s.connections[i]); i++) {
        s.polled[i] = (struct pollfd){s.connections[i].fd, POLLIN, 0};
        s.free[s.free_count++] = i;
    }
    if (s.status == 0 && !cm_stopped)
        fill(&s);
    s.requests = requests; /* what was asked for until now was no request of the load */
    if (s.status == 0 && !cm_stopped) {
        fprintf(stderr, "openloop: %s, %.6g requests a second, seed %llu\n", s.protocol->name, options.load,
                (unsigned long long)options.seed);
        cm_ready(s.hb);
        run(&s);
    }
    cm_end_server(&s.server);
    if (s.status == 0)
        report(&s);
    if (s.status == 0)
        cm_finished(s.hb);
    else
        cm_failed(s.hb);
    return s.status;
}
