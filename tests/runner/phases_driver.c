/* Makes the calls that it reads from standard input, one a line: what, domain, name, step, payload, between tabs. */
#include "castmates_phases.h"

typedef struct {
    castmates_range *range;
    const char *domain, *name;
    long step;
} work;

static castmates_range ranges[64];

static void *finish(void *given)
{
    castmates_range_end(((work *)given)->range);
    return NULL;
}

static void *other(void *given)
{
    const work *one = (const work *)given;
    castmates_phase_begin_in(one->domain, one->name, one->step, NULL);
    castmates_phase_end_in(one->domain);
    return NULL;
}

static void *many(void *given)
{
    for (long step = 0; step < 20000; step++) {
        castmates_phase_begin_in(NULL, (const char *)given, step, "n=1");
        castmates_phase_end();
    }
    return NULL;
}

static void in_thread(void *(*call)(void *), void *given)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, call, given) == 0)
        pthread_join(thread, NULL);
}

static void race(void)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    for (int one = 0; one < 4; one++)
        pthread_create(&threads[one], NULL, many, names[one]);
    for (int one = 0; one < 4; one++)
        pthread_join(threads[one], NULL);
}

int main(void)
{
    static char line[1024];
    int count = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[5], *at = line;
        line[strcspn(line, "\n")] = '\0';
        for (int one = 0; one < 5; one++) {
            words[one] = at;
            at += strcspn(at, "\t");
            if (*at != '\0')
                *at++ = '\0';
        }
        const char *what = words[0], *domain = words[1], *name = words[2], *payload = words[4];
        const long step = strtol(words[3], NULL, 10);
        work given = {step >= 0 && step < count ? &ranges[step] : NULL, domain, name, step};
        if (strcmp(what, "begin") == 0)
            castmates_phase_begin_in(domain, name, step, payload);
        else if (strcmp(what, "end") == 0)
            castmates_phase_end_in(domain);
        else if (strcmp(what, "mark") == 0)
            castmates_mark(name, step);
        else if (strcmp(what, "unmark") == 0)
            castmates_mark(NULL, -1);
        else if (strcmp(what, "start") == 0)
            ranges[count++] = castmates_range_start(domain, name, step, payload);
        else if (strcmp(what, "epoch") == 0)
            ranges[count++] = castmates_epoch_begin(step);
        else if (strcmp(what, "instant") == 0)
            castmates_instant(domain, name, step, payload);
        else if (strcmp(what, "finish") == 0)
            castmates_range_end(given.range);
        else if (strcmp(what, "finish-there") == 0)
            in_thread(finish, &given);
        else if (strcmp(what, "other") == 0)
            in_thread(other, &given);
        else if (strcmp(what, "race") == 0)
            race();
        else if (strcmp(what, "fork") == 0 && fork() == 0) {
            castmates_phase_begin("child", 1);
            castmates_phase_end();
            _exit(0);
        }
    }
    return 0;
}
