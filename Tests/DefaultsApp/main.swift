// SPDX-License-Identifier: Apache-2.0

// A program as it is written for Apple's systems: it imports Foundation and nothing else.

import Foundation

extension UserDefaults {
    var fontSize: Int { integer(forKey: "fontSize") }
}

struct Settings {
    @AppStorage("fontSize") var size = 12
}

func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
}

let settings = Settings()
UserDefaults.standard.register(defaults: ["registered": 1])
let words = CommandLine.arguments.dropFirst().prefix { !$0.hasPrefix("-") }.map { $0 }
switch words.first {
case "read": say(words.dropFirst().map { UserDefaults.standard.string(forKey: $0) ?? "none" }.joined(separator: " "))
case "write": UserDefaults.standard.set(words[2], forKey: words[1])
case "write-many": for index in 0..<200 { UserDefaults.standard.set(index, forKey: "key \(index)") }
case "synchronize":
    UserDefaults.standard.set(words[2], forKey: words[1])
    let isDone = UserDefaults.standard.synchronize()
    say("\(isDone)")
    kill(getpid(), SIGKILL)
case "replace":
    let values = [String: Any](uniqueKeysWithValues: (0..<500).map { ("key \($0)", words[1]) })
    let domain = ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_DOMAIN"] ?? ""
    UserDefaults.standard.setPersistentDomain(values, forName: domain)
    kill(getpid(), SIGKILL)
case "suite":
    guard let suite = UserDefaults(suiteName: words[1]) else {
        say("nil")
        exit(0)
    }
    if !words[3].isEmpty { suite.set(words[3], forKey: words[2]) }
    say(suite.string(forKey: words[2]) ?? "none")
case "user": say(words.dropFirst().map { "\(UserDefaults(user: $0) != nil)" }.joined(separator: " "))
case "register":
    UserDefaults.standard.register(defaults: ["only registered": 5])
    say("\(UserDefaults.standard.integer(forKey: "only registered"))")
case "size":
    say("\(settings.size)")
    settings.size += 1
case "follow":
    let token = UserDefaults.standard.observe(\.fontSize, options: [.initial, .new]) { defaults, change in
        say("size \(change.newValue ?? 0)")
    }
    withExtendedLifetime(token) { dispatchMain() }
default: exit(2)
}
