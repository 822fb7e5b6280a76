// SPDX-License-Identifier: Apache-2.0

// UserDefaults, beside Foundation's class and GSettings, in the same process.
//
//     settings fill ADDRESS DOMAIN              writes what the others read
//     settings first ADDRESS DOMAIN             at_nsec: when the first value was there, on CLOCK_MONOTONIC
//     settings first-of-foundation ADDRESS DOMAIN   the same of Foundation's class, without a bus
//     settings calls ADDRESS DOMAIN CALLS [SCHEMA-DIRECTORY CONFIGURATION-DIRECTORY]
//                                               nanoseconds a call, of each class
//     settings follow ADDRESS DOMAIN            usec: from another process's set to the observer, a line each
//     settings send ADDRESS DOMAIN TIMES        sets what `follow` observes

import Foundation
import Measuring
import UbiquitousDefaults

@main
struct Settings {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else { fail("usage: see the head of Settings.swift") }
        UserDefaults.use(domain: arguments[3], bus: arguments[2])
        let number = arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0
        switch arguments[1] {
        case "fill": try await fill(arguments[3])
        case "first": first { UserDefaults.standard.integer(forKey: "number") }
        case "first-of-foundation":
            first { Foundation.UserDefaults(suiteName: arguments[3])?.integer(forKey: "number") ?? 0 }
        case "calls": calls(number, arguments[3], arguments.dropFirst(5))
        case "follow": follow()
        case "send": send(number)
        default: fail("unknown: \(arguments[1])")
        }
    }

    private static func foundation(_ domain: String) -> Foundation.UserDefaults {
        Foundation.UserDefaults(suiteName: domain) ?? Foundation.UserDefaults.standard
    }

    private static func fill(_ domain: String) async throws {
        let theirs = foundation(domain)
        theirs.set(42, forKey: "number")
        theirs.set("sixteen bytes ok", forKey: "text")
        _ = theirs.synchronize()
        try await UserDefaults.standard.set(42, for: .init("number", default: 0))
        try await UserDefaults.standard.set("sixteen bytes ok", for: .init("text", default: ""))
    }

    private static func first(_ read: () -> Int) {
        if read() != 42 { fail("the value isn't there") }
        print("at_nsec=\(now())")
    }

    private static func calls(_ count: Int, _ domain: String, _ directories: ArraySlice<String>) {
        let (ours, theirs) = (UserDefaults.standard, foundation(domain))
        var line = "number_nsec=\(time(count) { ours.integer(forKey: "number") == 42 })"
        line += " text_nsec=\(time(count) { ours.string(forKey: "text") != nil })"
        line += " foundation_number_nsec=\(time(count / 10) { theirs.integer(forKey: "number") == 42 })"
        line += " foundation_text_nsec=\(time(count / 10) { theirs.string(forKey: "text") != nil })"
        let writes = count / 100
        var next = 0
        line += " set_nsec=\(time(writes) { next += 1; ours.set(next, forKey: "set"); return true })"
        line += " foundation_set_nsec=\(time(writes) { next += 1; theirs.set(next, forKey: "set"); return true })"
        if directories.count == 2, let settings = GSettings(directories.first ?? "", directories.last ?? "") {
            line += " gsettings_nsec=\(time(count) { settings.number == 42 })"
            var number: Int32 = 0
            line += " gsettings_set_nsec=\(time(writes / 10) { number += 1; return settings.set(number) })"
            // The next round reads this again.
            _ = settings.set(42)
        }
        print(line)
    }

    private static func follow() -> Never {
        let token = UserDefaults.standard.observe("sent") { defaults, _ in
            let sent = defaults.integer(forKey: "sent")
            if sent < 0 { exit(0) }
            print("usec=\(Double(Int(now()) - sent) / 1000)")
        }
        // The observer gets the changes that come after this read.
        _ = UserDefaults.standard.integer(forKey: "sent")
        FileHandle.standardOutput.write(Data("ready=1\n".utf8))
        withExtendedLifetime(token) { dispatchMain() }
    }

    private static func send(_ times: Int) {
        for _ in 0..<times {
            UserDefaults.standard.set(Int(now()), forKey: "sent")
            usleep(10_000)
        }
        UserDefaults.standard.set(-1, forKey: "sent")
    }
}
