/* lines: runs a command and reads what it writes: the keeper of programs whose output shows how far they are.

   The command's output is a pseudo-terminal, so that it comes line by line. It stays open here too: what was written
   can be read to the end after the command has ended, and a command that closes its output goes on. */
#define _GNU_SOURCE /* pipe2, ptsname_r */
#include <getopt.h>
#include <poll.h>
#include <regex.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "follow.h"

#define LONGEST_LINE 65536u /* bytes of a line that are looked at; what follows them is copied and not matched */
#define ESCAPE 0x1b
#define READS_A_TURN 64 /* so that signals are heard beside endless output */
#define LAST_READS 1024 /* what a dead command has left fits, and what its children write for ever does not matter */

static const char help[] =
    "usage: lines --step REGEX [--ready REGEX] [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND on a pseudo-terminal, copies what it writes to stdout, and beats at every line that --step matches.\n"
    "\n"
    "  --step REGEX    a line that is a step; its first group, if there is one, is the number of units done so far.\n"
    "                  A number that falls is one of a new count, which begins at 0\n"
    "  --ready REGEX   ready at the first line that matches; at the first step if left out\n"
    "  --help          show this and stop\n"
    "\n"
    "REGEX is a POSIX extended regular expression. A line ends with a newline or a carriage return; of long lines the\n"
    "first 65536 bytes count, and colours do not. A unit is one step, or what the number counts.\n"
    "SIGTERM, SIGINT and SIGHUP are handed on. COMMAND does not see CASTMATES_HEARTBEAT, and is killed when lines is.\n"
    "Exit status: that of COMMAND, 128+N if signal N killed it (0 if that was our own SIGTERM), 2 bad arguments,\n"
    "4 a step whose number is none, 126 or 127 COMMAND cannot be run.\n";

enum escape { PLAIN, AFTER_ESCAPE, IN_SEQUENCE, IN_TITLE };

struct keeper {
    struct cm_followed followed;
    regex_t step, ready;
    int has_ready, has_number;
    cm_heartbeat *hb;
    int is_ready, counting;
    uint64_t units; /* the last number that was read */
    char line[LONGEST_LINE + 1];
    size_t length;
    enum escape escape;
    int after_return; /* the last line ended with a carriage return: a newline now belongs to it */
    int wrong;        /* a number could not be read */
};

static void compile_or_exit(regex_t *regex, const char *option, const char *text)
{
    int error = regcomp(regex, text, REG_EXTENDED);
    if (error == 0)
        return;
    char why[256];
    regerror(error, regex, why, sizeof why);
    fprintf(stderr, "lines: --%s is no POSIX extended regular expression (%s): '%s'\n", option, why, text);
    exit(2);
}

/* Parse the options of lines itself; what follows them is the command. */
static void parse(struct keeper *keeper, int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"step", required_argument, NULL, 's'},
                                            {"ready", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    int option, has_step = 0;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(0);
        } else if (option == 's') {
            compile_or_exit(&keeper->step, "step", optarg);
            has_step = 1;
        } else if (option == 'r') {
            compile_or_exit(&keeper->ready, "ready", optarg);
            keeper->has_ready = 1;
        } else {
            exit(2); /* getopt_long has printed why */
        }
    }
    if (!has_step || optind == argc) {
        fprintf(stderr, "lines: %s is missing; see lines --help\n", has_step ? "a command to run" : "--step");
        exit(2);
    }
    keeper->has_number = keeper->step.re_nsub > 0;
    keeper->followed.command = argv + optind;
}

/* Read a whole number, which may have separators of thousands; 0 when it is none. */
static int read_number(const char *text, size_t length, uint64_t *number)
{
    uint64_t value = 0;
    size_t digits = 0;
    for (size_t i = 0; i < length; i++) {
        if (digits > 0 && (text[i] == ',' || text[i] == '_'))
            continue;
        if (text[i] < '0' || text[i] > '9' || value > (UINT64_MAX - 9) / 10)
            return 0;
        value = 10 * value + (uint64_t)(text[i] - '0');
        digits++;
    }
    *number = value;
    return digits > 0;
}

/* The units that a step's line adds. */
static uint64_t units_of(struct keeper *keeper, const regmatch_t *number)
{
    if (!keeper->has_number)
        return 1;
    if (number->rm_so < 0) /* this way to match has no number in it */
        return 0;
    const char *text = keeper->line + number->rm_so;
    size_t length = (size_t)(number->rm_eo - number->rm_so);
    uint64_t before = keeper->units;
    if (!read_number(text, length, &keeper->units)) {
        fprintf(stderr, "castmates lines: the first group of the step's line must match a whole number, but is '%.*s'\n",
                length < 60 ? (int)length : 60, text);
        keeper->wrong = 1;
        return 0;
    }
    if (!keeper->counting) { /* where it begins: a program that goes on from a checkpoint has not done all that now */
        keeper->counting = 1;
        return 0;
    }
    return keeper->units >= before ? keeper->units - before : keeper->units;
}

/* Look at the line that is complete. */
static void look(struct keeper *keeper)
{
    regmatch_t match[2] = {{-1, -1}, {-1, -1}};
    keeper->line[keeper->length] = '\0';
    int is_step = regexec(&keeper->step, keeper->line, 2, match, 0) == 0;
    uint64_t units = is_step ? units_of(keeper, &match[1]) : 0;
    if (!keeper->is_ready && !keeper->wrong &&
        (keeper->has_ready ? regexec(&keeper->ready, keeper->line, 0, NULL, 0) == 0 : is_step)) {
        keeper->is_ready = 1;
        cm_ready(keeper->hb);
    }
    if (keeper->is_ready && units > 0)
        cm_beat(keeper->hb, units);
}

/* Whether this byte belongs to an escape sequence, which colours a line and is no part of it. */
static int is_escaped(struct keeper *keeper, unsigned char byte)
{
    enum escape before = keeper->escape;
    if (byte == ESCAPE)
        keeper->escape = AFTER_ESCAPE;
    else if (before == AFTER_ESCAPE)
        keeper->escape = byte == '[' ? IN_SEQUENCE : byte == ']' ? IN_TITLE : PLAIN;
    else if (before == IN_SEQUENCE && byte >= 0x40 && byte <= 0x7e)
        keeper->escape = PLAIN;
    else if (before == IN_TITLE && byte == '\a')
        keeper->escape = PLAIN;
    return before != PLAIN || byte == ESCAPE;
}

static void feed(struct keeper *keeper, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && !keeper->wrong; i++) {
        char byte = bytes[i];
        if (byte == '\n' || byte == '\r') {
            if (byte == '\r' || !keeper->after_return)
                look(keeper);
            keeper->after_return = byte == '\r';
            keeper->length = 0;
            keeper->escape = PLAIN;
            continue;
        }
        keeper->after_return = 0;
        if (!is_escaped(keeper, (unsigned char)byte) && keeper->length < LONGEST_LINE)
            keeper->line[keeper->length++] = byte == '\0' ? ' ' : byte;
    }
}

/* Copy to stdout; that it is full or gone is no reason to end. */
static void copy(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(1, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        count -= (size_t)written;
    }
}

/* Read what is there. */
static void read_output(struct keeper *keeper, int output, int reads)
{
    static char bytes[65536];
    ssize_t count;
    while (reads-- > 0 && (count = read(output, bytes, sizeof bytes)) > 0) {
        feed(keeper, bytes, (size_t)count);
        copy(bytes, (size_t)count);
    }
}

/* Open both ends of a pseudo-terminal that passes on what is written as it is. */
static int open_terminal(int ends[2])
{
    const struct winsize wide = {.ws_row = 50, .ws_col = 200};
    struct termios settings;
    char name[64];
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
    if (ends[0] < 0 || grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0 || ptsname_r(ends[0], name, sizeof name) != 0)
        return -1;
    ends[1] = open(name, O_RDWR | O_NOCTTY);
    if (ends[1] < 0 || tcgetattr(ends[1], &settings) < 0)
        return -1;
    cfmakeraw(&settings);
    ioctl(ends[1], TIOCSWINSZ, &wide);
    return tcsetattr(ends[1], TCSANOW, &settings);
}

/* Make what the command writes to; a pipe where there is no pseudo-terminal. */
static int open_output(int ends[2])
{
    if (open_terminal(ends) < 0) {
        fprintf(stderr, "castmates lines: no pseudo-terminal can be had (%s): lines come as the program's buffers fill\n",
                strerror(errno));
        if (pipe(ends) < 0)
            return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

/* Read and hand on until the command has ended; returns its status as wait reports it. */
static int follow(struct keeper *keeper, int output)
{
    struct pollfd both[2] = {{.fd = output, .events = POLLIN}, {.fd = keeper->followed.signals, .events = POLLIN}};
    int status = 0, ended = 0;
    while (!ended && !keeper->wrong) {
        if (poll(both, 2, -1) < 0 && errno != EINTR)
            keeper->wrong = 1; /* cannot be: the two are ours */
        ended = cm_hear_signals(&keeper->followed, &status);
        read_output(keeper, output, ended ? LAST_READS : READS_A_TURN);
    }
    if (keeper->wrong) {
        kill(keeper->followed.pid, SIGKILL);
        waitpid(keeper->followed.pid, &status, 0);
    } else if (keeper->length > 0) {
        look(keeper); /* the last line has no end */
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct keeper keeper;
    int output[2], status, report = -1;
    parse(&keeper, argc, argv);
    keeper.hb = cm_heartbeat_or_exit();
    int error = cm_listen(&keeper.followed);
    if (error == 0 && (open_output(output) < 0 || (report = cm_fork_command(&keeper.followed, output[1], -1)) < 0))
        error = errno;
    if (error == 0)
        error = cm_await_exec(report);
    if (error != 0) {
        status = cm_blame_start(&keeper.followed, "lines", error);
    } else {
        int ended = follow(&keeper, output[0]);
        status = keeper.wrong ? 4 : cm_verdict(&keeper.followed, "lines", ended);
    }
    if (status == 0 || (keeper.followed.asked && !keeper.wrong)) /* how it takes our signal shows nothing of its work */
        cm_finished(keeper.hb);
    else
        cm_failed(keeper.hb);
    return status;
}
