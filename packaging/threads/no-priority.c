// SPDX-License-Identifier: Apache-2.0

// libdispatch's threads set their priority. The unit's system call filter refuses that, and libdispatch reports it in
// the journal and continues. GRDB has a dispatch queue for each database, and the end of one starts such a thread. All
// priorities are the same here, so with --wrap=setpriority this replaces the call.

int __wrap_setpriority(int which, unsigned who, int priority);

int __wrap_setpriority(int which, unsigned who, int priority) {
    (void)which;
    (void)who;
    (void)priority;
    return 0;
}
