// SPDX-License-Identifier: Apache-2.0

// The client library: the time to the first value, and the time to read one, beside GSettings in the same process.
//
//     library fill ADDRESS IDENTIFIER            writes what the others read
//     library first ADDRESS IDENTIFIER           at_nsec: when the first value was there, on CLOCK_MONOTONIC
//     library reads ADDRESS IDENTIFIER CALLS [SCHEMA-DIRECTORY CONFIGURATION-DIRECTORY]
//                                                nanoseconds a read, of an integer, a string and of GSettings
//
// GSettings is called as a C program calls it, for its integer key `number`, with the keyfile backend, which also keeps
// values in memory.

import Glibc
import Measuring
import UbiquitousStore

@main
struct Library {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else { fail("usage: see the head of Library.swift") }
        NSUbiquitousKeyValueStore.use(identifier: arguments[3], bus: arguments[2])
        switch arguments[1] {
        case "fill": fill()
        case "first": first()
        case "reads": reads(Int(arguments[4]) ?? 0, arguments.dropFirst(5))
        default: fail("unknown: \(arguments[1])")
        }
    }

    private static func fill() {
        let store = NSUbiquitousKeyValueStore.default
        store.set(Int64(42), forKey: "number")
        store.set("sixteen bytes ok", forKey: "text")
        // The service may not have its name yet.
        for _ in 0..<1000 where !store.synchronize() { usleep(10_000) }
        if !store.synchronize() { fail("the service doesn't answer") }
    }

    private static func first() {
        if NSUbiquitousKeyValueStore.default.longLong(forKey: "number") != 42 { fail("the value isn't there") }
        print("at_nsec=\(now())")
    }

    private static func reads(_ calls: Int, _ directories: ArraySlice<String>) {
        let store = NSUbiquitousKeyValueStore.default
        var line = "number_nsec=\(time(calls) { store.longLong(forKey: "number") == 42 })"
        line += " text_nsec=\(time(calls) { store.string(forKey: "text") != nil })"
        if directories.count == 2, let settings = GSettings(directories.first ?? "", directories.last ?? "") {
            line += " gsettings_nsec=\(time(calls) { settings.number == 42 })"
        }
        print(line)
    }
}
