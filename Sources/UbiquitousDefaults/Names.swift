// SPDX-License-Identifier: Apache-2.0

// Apple's names on the defaults service. A scoped import shadows what Foundation has of the same name, re-exported too:
// one file with `@_exported import UbiquitousDefaults` gives these to every file of an app's module.

@_exported public import struct DefaultsDomains.AppStorage
@_exported public import class DefaultsDomains.NSKeyValueObservation
@_exported public import struct DefaultsDomains.NSKeyValueObservedChange
@_exported public import struct DefaultsDomains.NSKeyValueObservingOptions
@_exported public import class DefaultsDomains.UserDefaults
