// SPDX-License-Identifier: Apache-2.0
//
// Has the program believe that it is later than the kernel has it, as after the clock was set back. Times that are
// counted since the start of the machine stay right. For LD_PRELOAD.
//
//   SHIFTED_CLOCK       by how many seconds; without it, which is so in the tests themselves, nothing is changed
//   SHIFTED_CLOCK_STEP  by how many more at each look: less than 0 is a clock that is set back again and again

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
    static _Atomic long looks;
    const char *seconds = getenv("SHIFTED_CLOCK"), *step = getenv("SHIFTED_CLOCK_STEP");
    return seconds ? atol(seconds) + (step ? atol(step) * looks++ : 0) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += shift();
    return (int) result;
}

int timespec_get(struct timespec *time, int base) {
    return clock_gettime(CLOCK_REALTIME, time) == 0 ? base : 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void) zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
