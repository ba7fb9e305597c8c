/* Lets the lab's processor model what a program does from its start to its end, whatever group it is in (processor/rdt.c). */
#include <cpuid.h>

static void lab_model(unsigned subleaf)
{
    unsigned a, b, c, d;
    __cpuid_count(0x10, subleaf, a, b, c, d);
}

static __attribute__((constructor)) void lab_join(void) { lab_model(0x52440001); }
static __attribute__((destructor)) void lab_leave(void) { lab_model(0x52440000); }
