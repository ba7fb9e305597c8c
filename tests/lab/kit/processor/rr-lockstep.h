#ifndef EXEC_RR_LOCKSTEP_H
#define EXEC_RR_LOCKSTEP_H
#include "exec/hwaddr.h"
/*
 * Guest time for a cache that obeys (target/i386/rdt.c), with -icount shift=0:
 * each CPU has a time of its own, in ns, and the one that is behind runs.
 */
int64_t rr_time(CPUState *cpu);     /* of this CPU, now */
int64_t rr_slept(CPUState *cpu);    /* how much of it was halted */
void rr_wait(CPUState *cpu, int64_t ns, bool turn_ends);

bool rdt_obeys(void);
bool rdt_models(CPUState *cpu);
void rdt_access(CPUState *cpu, hwaddr at, bool write);
void rdt_tick(int64_t now, int64_t local);
#endif
