#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_steps.h"
#include <pthread.h>
static void* w(void*a){ for(int i=0;i<10;i++){ lttng_ust_tracepoint(job,step_begin,i); volatile double x=0; for(int k=0;k<100000;k++) x+=k; if(i==3) lttng_ust_tracepoint(job,note,"a \"quoted\" line\nand another, { x = 1 }",x/7); lttng_ust_tracepoint(job,step_end,i);} return 0;}
int main(){ pthread_t t[2]; for(int i=0;i<2;i++) pthread_create(t+i,0,w,0); for(int i=0;i<2;i++) pthread_join(t[i],0); return 0;}
