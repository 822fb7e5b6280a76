// SPDX-License-Identifier: Apache-2.0
#include <X11/Xlib.h>
#include <X11/extensions/Xdamage.h>
