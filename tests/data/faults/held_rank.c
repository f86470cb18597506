/* Holds rank 1 up: every 10 ms a timer takes 3 ms of its time, as a daemon on its processor would. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { PERIOD = 10000 /* us */, LENGTH = 3000000 /* ns */ };

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void hold(int number)
{
    long long until = now() + LENGTH;
    (void)number;
    while (now() < until)
        ;
}

__attribute__((constructor)) static void start(void)
{
    const char *mpich = getenv("PMI_RANK"), *openmpi = getenv("OMPI_COMM_WORLD_RANK");
    const char *rank = mpich != NULL ? mpich : openmpi;
    if (rank == NULL || strcmp(rank, "1") != 0)
        return;
    struct sigaction action;
    struct itimerval timer = {{0, PERIOD}, {0, PERIOD}};
    memset(&action, 0, sizeof action);
    action.sa_handler = hold;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}
