/* A neighbour that does nothing: it sleeps, and says once a millisecond that it was not frozen. */
#include "program.h"

int main(void)
{
    cm_heartbeat *hb = cm_heartbeat_or_exit();
    const struct timespec pause = {.tv_nsec = 1000000};
    cm_stop_on_signals();
    cm_ready(hb);
    while (!cm_stopped) {
        nanosleep(&pause, NULL);
        cm_beat(hb, 1);
    }
    cm_finished(hb);
}
