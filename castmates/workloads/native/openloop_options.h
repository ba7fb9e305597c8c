/* The command line of the load generator. */
#ifndef CASTMATES_OPENLOOP_OPTIONS_H
#define CASTMATES_OPENLOOP_OPTIONS_H

#include <getopt.h>

#include "program.h"
#include "protocols.h"

#define CM_MOST_CONNECTIONS 256u
#define CM_MOST_KEYS 10000000u
#define CM_LONGEST_VALUE 1000000u
#define CM_MOST_LOAD 1e7 /* requests a second */

typedef struct {
    const cm_protocol *protocol;
    double load; /* requests a second */
    unsigned connections;
    unsigned keys;
    unsigned value;  /* bytes */
    unsigned writes; /* per cent */
    int zipf;
    int spin; /* -1: where it has a CPU that the server has not */
    uint64_t seed;
    uint64_t units; /* answers after which it ends; 0 for none */
    const char *connect; /* to a server that runs already */
} cm_service_options;

static inline void cm_service_help(void)
{
    puts("usage: openloop --server S --load R [OPTION]...\n\n"
         "Starts a server and sends it requests that arrive at random, R a second on average, whether or not\n"
         "those before them are answered (an open loop). A latency counts from the moment at which the request\n"
         "was due, so that waiting behind others counts. It goes on until SIGTERM, and holds every answer\n"
         "against what it must be.\n\n"
         "  --server S       memcached, redis or nginx\n"
         "  --load R         requests a second on average (20000, 20K)\n"
         "  --connections N  each with one request at a time; who finds none free waits (default 16)\n"
         "  --keys N         keys that there are, or pages of nginx (default 10000)\n"
         "  --value N        bytes of each value (default 1000)\n"
         "  --writes N%      the share of the requests that store the value anew (default 0%; nginx has none)\n"
         "  --popularity P   zipf (exponent 0.99; default) or uniform\n"
         "  --wait W         spin or sleep until the next request is due (default: spin where it has its own CPU)\n"
         "  --seed N         of arrivals and keys (default: another one in each launch)\n"
         "  --connect PATH   to a server that listens to this socket already, and is no part of the member\n"
         "  --units N        stop after N answers\n"
         "  --help           show this and stop\n\n"
         "With several CPUs the last one is the generator's, and all others are the server's; with one they share it.\n"
         "A unit is one answered request.\n"
         "Exit status: 0 done, 1 there is no server, 2 bad arguments, 3 an answer is wrong.");
}

static inline unsigned cm_count_or_exit(const char *option, const char *text, unsigned least, unsigned most)
{
    uint64_t value = cm_parse_number(text);
    if (value < least || value > most) {
        fprintf(stderr, "openloop: --%s must be a whole number from %u to %u, but is '%s'\n", option, least, most,
                text);
        exit(2);
    }
    return (unsigned)value;
}

static inline double cm_load_or_exit(const char *text)
{
    char *end;
    double load = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
    if (load > 0) {
        load *= *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : 1;
        end += *end == 'K' || *end == 'M';
    }
    if (load <= 0 || load > CM_MOST_LOAD || *end != '\0') {
        fprintf(stderr, "openloop: --load must be a number of requests a second, such as 20000 or 20K, but is '%s'\n",
                text);
        exit(2);
    }
    return load;
}

/* Which of these words it is, from 0 on. */
static inline int cm_word_or_exit(const char *option, const char *text, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    fprintf(stderr, "openloop: --%s must be one of", option);
    for (int i = 0; words[i] != NULL; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", words[i]);
    fprintf(stderr, ", but is '%s'\n", text);
    exit(2);
}

static inline void cm_take_service_option(cm_service_options *options, int option)
{
    static const char *const servers[] = {"memcached", "redis", "nginx", NULL};
    static const char *const kinds[] = {"uniform", "zipf", NULL}, *const waits[] = {"sleep", "spin", NULL};
    switch (option) {
    case 'S': options->protocol = &cm_protocols[cm_word_or_exit("server", optarg, servers)]; break;
    case 'l': options->load = cm_load_or_exit(optarg); break;
    case 'c': options->connections = cm_count_or_exit("connections", optarg, 1, CM_MOST_CONNECTIONS); break;
    case 'k': options->keys = cm_count_or_exit("keys", optarg, 1, CM_MOST_KEYS); break;
    case 'v': options->value = cm_count_or_exit("value", optarg, 1, CM_LONGEST_VALUE); break;
    case 'w': options->writes = cm_percent_or_exit("openloop", "writes", optarg); break;
    case 'p': options->zipf = cm_word_or_exit("popularity", optarg, kinds); break;
    case 'W': options->spin = cm_word_or_exit("wait", optarg, waits); break;
    case 's': options->seed = cm_number_or_exit("openloop", "seed", optarg, 1); break;
    case 'C': options->connect = optarg; break;
    case 'u': options->units = cm_number_or_exit("openloop", "units", optarg, 1); break;
    case 'h': cm_service_help(); exit(0);
    default: exit(2); /* getopt_long has printed why */
    }
}

static inline cm_service_options cm_service_parse(int argc, char **argv)
{
    static const struct option all[] = {
        {"server", required_argument, NULL, 'S'},     {"load", required_argument, NULL, 'l'},
        {"connections", required_argument, NULL, 'c'}, {"keys", required_argument, NULL, 'k'},
        {"value", required_argument, NULL, 'v'},      {"writes", required_argument, NULL, 'w'},
        {"popularity", required_argument, NULL, 'p'}, {"wait", required_argument, NULL, 'W'},
        {"seed", required_argument, NULL, 's'},       {"connect", required_argument, NULL, 'C'},
        {"units", required_argument, NULL, 'u'},      {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    cm_service_options options = {.connections = 16, .keys = 10000, .value = 1000, .zipf = 1, .spin = -1};
    int option;
    while ((option = getopt_long(argc, argv, "", all, NULL)) != -1)
        cm_take_service_option(&options, option);
    const char *wrong = optind < argc              ? argv[optind]
                        : options.protocol == NULL ? "without --server"
                        : options.load == 0        ? "without --load"
                        : options.writes > 0 && !options.protocol->writes ? "--writes: nginx only reads"
                                                                          : NULL;
    if (wrong != NULL) {
        fprintf(stderr, "openloop: cannot be started like this: %s; see openloop --help\n", wrong);
        exit(2);
    }
    if (options.seed == 0)
        options.seed = cm_now() ^ (uint64_t)getpid() << 32;
    return options;
}

#endif
