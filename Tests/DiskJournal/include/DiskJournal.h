// SPDX-License-Identifier: Apache-2.0
// Declares nothing: when it is preloaded, the library replaces functions of the C library.
