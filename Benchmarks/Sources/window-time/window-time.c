// SPDX-License-Identifier: Apache-2.0
//
//   window-time PROGRAM [ARGUMENT…]
//
// Starts a program on $DISPLAY, prints the milliseconds from before the fork until it has drawn in a window, and kills
// it. No other program may open windows meanwhile.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <X11/Xlib.h>
#include <X11/extensions/Xdamage.h>

#include "fixture.h"

enum { LEAST_SIZE = 100, PATIENCE_MSEC = 60000 };

/// A window may be gone before its attributes are read.
static int ignore(Display *display, XErrorEvent *event) {
    (void)display, (void)event;
    return 0;
}

static pid_t start(char **command) {
    pid_t pid = fork();
    check(pid < 0 ? -errno : 0, "fork");
    if (pid == 0) {
        execvp(command[0], command);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

/// Waits for the next event from the X server.
static void await(Display *display, uint64_t began) {
    uint64_t passed = (now_nsec() - began) / 1000000;
    struct pollfd server = {.fd = ConnectionNumber(display), .events = POLLIN};
    if (passed >= PATIENCE_MSEC || poll(&server, 1, (int)(PATIENCE_MSEC - passed)) <= 0)
        die("no window was drawn within %d s", PATIENCE_MSEC / 1000);
}

int main(int argc, char **argv) {
    if (argc < 2) die("usage: window-time PROGRAM [ARGUMENT...]");
    Display *display = XOpenDisplay(NULL);
    if (display == NULL) die("there is no X server at $DISPLAY");
    int damage, errors;
    if (!XDamageQueryExtension(display, &damage, &errors)) die("the X server has no DAMAGE");
    XSetErrorHandler(ignore);
    XSelectInput(display, DefaultRootWindow(display), SubstructureNotifyMask);
    XSync(display, False);

    uint64_t began = now_nsec();
    pid_t pid = start(argv + 1);
    bool is_drawn = false;
    while (!is_drawn) {
        if (XPending(display) == 0) {
            if (waitpid(pid, NULL, WNOHANG) != 0) die("%s has ended without a window", argv[1]);
            await(display, began);
        }
        XEvent event;
        XNextEvent(display, &event);
        XWindowAttributes attributes;
        if (event.type == MapNotify && XGetWindowAttributes(display, event.xmap.window, &attributes) != 0 &&
            attributes.width >= LEAST_SIZE && attributes.height >= LEAST_SIZE)
            XDamageCreate(display, event.xmap.window, XDamageReportNonEmpty);
        is_drawn = event.type == damage + XDamageNotify;
    }
    printf("msec=%.3f\n", (double)(now_nsec() - began) / 1e6);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    XCloseDisplay(display);
    return 0;
}
