// SPDX-License-Identifier: Apache-2.0
#ifndef CADWAITA_SHIM_H
#define CADWAITA_SHIM_H

// Newer versions deprecate parts of GTK 4.8.
#define GDK_DISABLE_DEPRECATION_WARNINGS
#include <adwaita.h>

#endif
