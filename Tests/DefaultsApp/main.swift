// SPDX-License-Identifier: Apache-2.0

// A program written as for Apple's systems: it imports only Foundation.

import Foundation

extension UserDefaults {
    var fontSize: Int { integer(forKey: "fontSize") }
}

struct Settings {
    @AppStorage("fontSize") var size = 12
}

/// What tests of programs for Apple's systems use in place of the real object.
class Recorder: UserDefaults, @unchecked Sendable {
    var keys: [String] = []

    override func set(_ value: Int, forKey defaultName: String) {
        keys.append(defaultName)
        super.set(value, forKey: defaultName)
    }
}

class Named: UserDefaults, @unchecked Sendable {
    override init?(suiteName: String?) {
        guard suiteName != nil else { return nil }
        super.init(suiteName: suiteName)
    }
}

func say(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
}

let words = CommandLine.arguments.dropFirst().prefix { !$0.hasPrefix("-") }.map { $0 }
if words.first == "use" { UserDefaults.use(domain: words[1]) }
let settings = Settings()
UserDefaults.standard.register(defaults: ["registered": 1])
switch words.first {
case "use", "domain":
    // It is in use already.
    let isSet = UserDefaults.use(domain: "org.example.Late")
    say("\(UserDefaults.domain) \(isSet)")
case "read": say(words.dropFirst().map { UserDefaults.standard.string(forKey: $0) ?? "none" }.joined(separator: " "))
case "write": UserDefaults.standard.set(words[2], forKey: words[1])
case "remove": UserDefaults.standard.removeObject(forKey: words[1])
case "write-at-exit":
    atexit { UserDefaults.standard.set("late", forKey: "late") }
    UserDefaults.standard.set("early", forKey: "early")
    exit(0)
case "subclass":
    let plain = Recorder(suiteName: "org.example.Suite") as UserDefaults?
    plain?.set(1, forKey: "a")
    let named = Named(suiteName: "org.example.Suite")
    named?.set(2, forKey: "b")
    say("\((plain as? Recorder)?.keys ?? []) \(named?.integer(forKey: "a") ?? 0) \(Recorder().integer(forKey: "a"))")
case "write-many": for index in 0..<200 { UserDefaults.standard.set(index, forKey: "key \(index)") }
case "add-suites": for name in words.dropFirst() { UserDefaults.standard.addSuite(named: name) }
case "synchronize":
    UserDefaults.standard.set(words[2], forKey: words[1])
    let isDone = UserDefaults.standard.synchronize()
    say("\(isDone)")
    kill(getpid(), SIGKILL)
case "write-and-fork":
    UserDefaults.standard.set(words[2], forKey: words[1])
    UserDefaults.standard.synchronize()
    // Swift has fork(2) for no program, as threads are missing in the child. This one only waits.
    let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> pid_t).self)
    let child = fork()
    if child == 0 {
        close(1)
        close(2)
        sleep(60)
        _exit(0)
    }
    say("\(child)")
case "replace":
    let values = [String: Any](uniqueKeysWithValues: (0..<500).map { ("key \($0)", words[1]) })
    let domain = ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_DOMAIN"] ?? ""
    UserDefaults.standard.setPersistentDomain(values, forName: domain)
    kill(getpid(), SIGKILL)
case "reset":
    UserDefaults.standard.removePersistentDomain(forName: UserDefaults.domain)
    UserDefaults.standard.set(words[2], forKey: words[1])
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
case "write-later":
    _ = UserDefaults.standard.string(forKey: words[1])
    say("ready")
    while !FileManager.default.fileExists(atPath: words[3]) { usleep(1000) }
    UserDefaults.standard.set(words[2], forKey: words[1])
    say("written")
    dispatchMain()
case "threads":
    // For the thread sanitizer: everything at once.
    DispatchQueue.concurrentPerform(iterations: 100) { number in
        let token = UserDefaults.standard.observe("key \(number % 7)") { defaults, _ in
            _ = defaults.dictionaryRepresentation().count
        }
        for index in 0..<50 {
            UserDefaults.standard.set(index, forKey: "key \(number % 7)")
            _ = UserDefaults.standard.integer(forKey: "key \(number)")
            if index == 25 { UserDefaults.standard.register(defaults: ["registered \(number)": number]) }
            if index.isMultiple(of: 5) { UserDefaults(suiteName: "org.example.suite")?.set(number, forKey: "key") }
        }
        token.invalidate()
    }
    say("\(UserDefaults.standard.synchronize())")
case "journal": writeJournal(to: words[1], name: words[2], count: Int(words[3]) ?? 0, seed: UInt64(words[4]) ?? 0)
case "reader": runReader(Array(words.dropFirst()), say: say)
case "colour":
    let sample = PrefsInCloud()
    sample.prepareKeyValueStoreForUse()
    say("colour \(sample.chosenColorValue)")
    if words.count > 1 {
        sample.chosenColorValue = Int(words[1]) ?? 0
    } else {
        sample.update = { say("colour \($0)") }
        withExtendedLifetime(sample) { dispatchMain() }
    }
default: exit(2)
}
