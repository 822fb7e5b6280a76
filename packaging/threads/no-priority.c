// SPDX-License-Identifier: Apache-2.0

// libdispatch's threads set their priority, which the unit's filter of system calls refuses; they say so in the journal
// and go on. GRDB has a dispatch queue for each database, and with the end of one there is such a thread. Here all
// priorities are the same: with --wrap=setpriority nothing is asked of the kernel.

int __wrap_setpriority(int which, unsigned who, int priority);

int __wrap_setpriority(int which, unsigned who, int priority) {
    (void)which;
    (void)who;
    (void)priority;
    return 0;
}
