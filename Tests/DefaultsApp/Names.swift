// SPDX-License-Identifier: Apache-2.0

// The one line that a program for Apple's systems needs here.
@_exported import UbiquitousDefaults
