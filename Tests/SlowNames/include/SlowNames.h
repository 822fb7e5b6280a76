// SPDX-License-Identifier: Apache-2.0
// Nothing is called: the library takes the place of functions of the C library when it is preloaded.
