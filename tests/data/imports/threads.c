#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int fd;
static void mark(const char*s){ if(fd>0) write(fd,s,strlen(s)); }
static void* w(void*a){ for(int i=0;i<5;i++){ char b[64]; snprintf(b,64,"B|%d|step %d",getpid(),i); mark(b); pthread_mutex_lock(&m); usleep(1000); pthread_mutex_unlock(&m); volatile double x=0; for(int k=0;k<300000;k++) x+=k; snprintf(b,64,"E|%d",getpid()); mark(b); snprintf(b,64,"C|%d|batches|%d",getpid(),i); mark(b);} return 0;}
int main(int c,char**v){ fd=c>1?open(v[1],O_WRONLY):-1; pthread_t t[2]; for(int i=0;i<2;i++) pthread_create(t+i,0,w,0); if(fork()==0){ usleep(2000); exit(3);} int s; wait(&s); for(int i=0;i<2;i++) pthread_join(t[i],0); kill(getpid(),0); return 0;}
