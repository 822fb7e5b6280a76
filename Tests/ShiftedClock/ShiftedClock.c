// SPDX-License-Identifier: Apache-2.0
//
// Makes the program believe that it is later than the kernel says, as if the clock had been set back after the program
// read it. Clocks that count from the machine's start are not changed. For LD_PRELOAD.
//
//   SHIFTED_CLOCK       the number of seconds; unset, as in the tests themselves, nothing is changed
//   SHIFTED_CLOCK_STEP  the seconds to add at each reading; a negative number is a clock that is set back repeatedly

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
