#ifndef I386_RDT_H
#define I386_RDT_H
void rdt_cpuid(CPUX86State *env, uint32_t index, uint32_t count,
               uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);
void rdt_model(CPUX86State *env);
int rdt_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val);
int rdt_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val);
#endif
