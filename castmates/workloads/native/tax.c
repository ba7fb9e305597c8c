/* tax: computes in registers, as the placebo does, and asks the lead `taxed` for a known share of its rate.

   tax [--loss 10%] [--sleep]      --sleep: it only sleeps, and asks once a millisecond */
#include "tax.h"

#include "pins.h"
#include "program.h"

#define TAX_PAUSE_NS 1000000
#define TAX_ROUNDS 200000u /* between two beats: well below TAX_FRESH_NS on any processor */

static double tax_share_or_exit(const char *text)
{
    char *end = NULL;
    double value = text == NULL ? -1 : strtod(text, &end);
    if (end == NULL || end == text || !(value >= 0 && value < 100) || strcmp(end, "%") != 0) {
        fprintf(stderr, "tax: --loss must be a share from 0%% to below 100%%, such as 10%%, but is '%s'\n",
                text == NULL ? "" : text);
        exit(2);
    }
    return value / 100;
}

int main(int argc, char **argv)
{
    double loss = 0.1;
    int sleeps = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--loss") == 0) {
            loss = tax_share_or_exit(argv[++i]);
        } else if (strcmp(argv[i], "--sleep") == 0) {
            sleeps = 1;
        } else if (strcmp(argv[i], "--help") == 0) {
            puts("usage: tax [--loss N%] [--sleep]\n\nComputes in registers, or sleeps, and asks the lead `taxed` for this "
                 "share of its rate (10%).");
            return 0;
        } else {
            fprintf(stderr, "tax: there is no option '%s'; there are --loss N%% and --sleep\n", argv[i]);
            return 2;
        }
    }
    cm_heartbeat *hb = cm_heartbeat_or_exit();
    const struct timespec pause = {.tv_nsec = TAX_PAUSE_NS};
    uint64_t value = 1;
    cm_stop_on_signals();
    cm_ready(hb);
    while (!cm_stopped) {
        if (sleeps)
            nanosleep(&pause, NULL);
        for (unsigned i = 0; !sleeps && i < TAX_ROUNDS; i++) {
            CM_PIN(value);
            value = value * 6364136223846793005u + 1;
        }
        tax_ask(loss);
        cm_beat(hb, 1);
    }
    cm_finished(hb);
    return 0;
}
