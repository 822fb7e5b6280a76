// SPDX-License-Identifier: Apache-2.0
#ifndef CGIO_SHIM_H
#define CGIO_SHIM_H

#include <gio/gdesktopappinfo.h>
#include <gio/gio.h>
#include <glib-unix.h>

// Missing from the Glibc module.
#include <libintl.h>
#include <locale.h>
#include <sys/eventfd.h>

// libdispatch exports these for CoreFoundation's run loop and declares them in no header.

/// The main queue's eventfd, readable while something is queued.
extern int _dispatch_get_main_queue_handle_4CF(void);
/// Runs what is queued on the main queue; the argument is ignored.
extern void _dispatch_main_queue_callback_4CF(void *message);

#endif
