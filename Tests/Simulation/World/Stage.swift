// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// The world in which a story is played.
final class Stage {
    private var conditions = Conditions()
    private var isEncrypted = false
    private var movesToKeys = false
    private lazy var world = makeWorld()
    private var names: [String] = []
    private var seen: [String] = []
    private var origins: [Origin] = []
    /// What restores the remote to its saved states, by their names.
    private var saved: [String: () -> Void] = [:]

    init() { conditions.places = 2 }

    func end() { world.end() }

    private func makeWorld() -> World<WholeDevice> {
        var plan = Plan(conditions: conditions, steps: [])
        (plan.isEncrypted, plan.hasAttacker, plan.movesToKeys) = (isEncrypted, isEncrypted && !movesToKeys, movesToKeys)
        let world = World<WholeDevice>(seed: 1, plan: plan, isOrderly: true, trace: Trace(nil))
        (world.isStory, world.resolvesByItself) = (true, false)
        world.onNotice = { [unowned self] device, notice in
            let keys = notice.keys.map(\.string).joined(separator: ", ")
            seen.append("\(names[device]) is told: \(notice.reason), \(keys.isEmpty ? "no keys" : keys)")
        }
        return world
    }

    /// Carries out commands.
    /// - Parameter line: the line number of the first one.
    /// - Returns: what was seen.
    func perform(_ commands: [String], from line: Int) throws(Scenario.Flaw) -> [String] {
        seen = []
        for (index, command) in commands.enumerated() {
            let words: [Substring] = command.split(separator: " " as Character)
            do throws(Nonsense) { try obey(words.map { "\($0)" }) } catch {
                throw Scenario.Flaw(line: line + index, sentence: "\(command): \(error.clause)")
            }
            world.executor.drain()
            world.timeline.run(for: 0)
        }
        if let violation = world.violation { seen.append("BROKEN: \(violation)") }
        return seen.isEmpty ? ["ok"] : seen
    }

    /// A command that makes no sense.
    private struct Nonsense: Error {
        let clause: String

        static let command = Nonsense(clause: "this is no command")
    }

    private func obey(_ words: [String]) throws(Nonsense) {
        switch (words.first ?? "", words.count) {
        case ("folder", 1): conditions.isFolder = true
        case ("cluster", 1): conditions.isCluster = true
        case ("encrypted", 1): isEncrypted = true
        case _ where words.starts(with: ["accounts", "move"]):
            (movesToKeys, conditions.isFolder) = (true, words.dropFirst(2) == ["in", "a", "folder"])
        case ("attack", 2):
            guard let attack = Attack(rawValue: words[1]) else { throw Nonsense(clause: "\(words[1]) is no attack") }
            world.perform(.attack(place: 0, attack))
        case ("limit", 3):
            guard let keys = Int(words[1]), words[2] == "keys" else { throw .command }
            conditions.limits = Limits(keys: keys)
        case ("wait", 3): world.timeline.run(for: try Self.duration(words[1...]))
        case ("device", 2...): try addDevice(words)
        case ("carry", 4):
            let from = try number(words[2]), to = try number(words[3])
            world.places[0].carryAll(below: try names(of: words[1]), from: from, to: to)
        case _ where words == ["empty", "the", "remote"]: world.places[0].empty()
        case ("remote", 3...) where words[1] == "meets":
            world.places[0].faultProfile = FaultProfile(always: try words[2...].map(Self.fault))
        case _ where words == ["remote", "is", "well"]: world.places[0].faultProfile = .fair
        case ("remote", 5...) where words[1] == "is": try turn(Array(words.dropFirst(2)))
        case ("remote", 4) where words[1...2] == ["seen", "by"]: seen.append(remote(try number(words[3])))
        default:
            let device = world.devices[try number(words.first ?? "")]
            guard words.count > 1 else { throw .command }
            try perform(device, words[0], Array(words.dropFirst()))
        }
    }

    /// `remote is saved as NAME`, `remote is restored to NAME [after a poll of DEVICE]`
    private func turn(_ words: [String]) throws(Nonsense) {
        let place = world.places[0]
        if words.count == 3, words[..<2] == ["saved", "as"] {
            if let cluster = place.cluster {
                saved[words[2]] = { [cluster, model = cluster.model] in cluster.restore(model) }
            } else {
                saved[words[2]] = place.restoration()
            }
            return
        }
        guard words[..<2] == ["restored", "to"] else { throw .command }
        guard let restore = saved[words[2]] else { throw Nonsense(clause: "nothing was saved as \(words[2])") }
        if words.count == 3 { return restore() }
        guard words.count == 8, words[3..<7] == ["after", "a", "poll", "of"] else { throw .command }
        guard let cluster = place.cluster else { throw Nonsense(clause: "the remote is no cluster") }
        let device = try number(words[7])
        cluster.onAnswer = { [unowned cluster] asker in
            guard asker == device else { return }
            cluster.onAnswer = { _ in }
            restore()
        }
    }

    /// A prefix of object names: that of a kind, or the name of a device's head.
    private func names(of what: String) throws(Nonsense) -> String {
        let kinds = ["heads": "h/", "segments": "s/", "markers": "a/", "all": ""]
        if let kind = kinds[what] { return kind }
        guard names.contains(what), let origin = world.devices[try number(what)].origin else {
            throw Nonsense(clause: "\(what) can't be carried")
        }
        return "h/\(origin)"
    }

    private func number(_ name: String) throws(Nonsense) -> Int {
        guard let number = names.firstIndex(of: name) else { throw Nonsense(clause: "there is no \(name)") }
        return number
    }

    /// `device NAME [N years ahead]`
    private func addDevice(_ words: [String]) throws(Nonsense) {
        guard words.count == 2 || words.count == 5 && words[4] == "ahead" else { throw .command }
        let ahead = words.count == 5 ? try Self.duration(words[2...3]) : 0
        try add(words[1])
        let device = world.addDevice()
        device.clock = Int64(ahead / 1000)
        for place in world.places { place.isCarriedByHand = conditions.isFolder }
        device.start()
    }

    private func add(_ name: String) throws(Nonsense) {
        if names.contains(name) { throw Nonsense(clause: "there is a \(name) already") }
        names.append(name)
    }

    /// What a device sees of the remote.
    private func remote(_ device: Int) -> String {
        let objects = world.places[0].names(seenBy: device)
        func count(_ folder: String) -> Int { objects.count { $0.hasPrefix(folder) } }
        return "\(count("a/")) accounts, \(count("h/")) heads, \(count("s/")) segments"
    }

    private static func fault(_ name: String) throws(Nonsense) -> Fault {
        guard let fault = Fault.allCases.first(where: { "\($0)" == name }) else {
            throw Nonsense(clause: "\(name) is no fault")
        }
        return fault
    }

    /// `N years`
    private static func duration(_ words: ArraySlice<String>) throws(Nonsense) -> UInt64 {
        let units = ["second": second, "minute": minute, "hour": hour, "day": day, "year": 365 * day]
        let unit = words.last ?? ""
        guard let number = words.first.flatMap(UInt64.init),
            let length = units[unit] ?? units[unit.hasSuffix("s") ? String(unit.dropLast()) : ""]
        else { throw Nonsense(clause: "\(words.joined(separator: " ")) is no time") }
        return number * length
    }

    // MARK: Commands to devices

    private func perform(_ device: WholeDevice, _ name: String, _ words: [String]) throws(Nonsense) {
        switch (words[0], words.count) {
        case ("sets", 3...): device.set(words[1], Self.text(words)).map { seen.append("\(name): \($0)") }
        case ("removes", 2): device.set(words[1], nil).map { seen.append("\(name): \($0)") }
        case ("shows", 1): show(device, name)
        case ("state", 1): seen.append("\(name) is \(device.stateDescription)")
        case ("origin", 1): seen.append("\(name) writes under origin \(origin(of: device))")
        case ("signs", 2...): try sign(device, Array(words.dropFirst()))
        case _ where words == ["goes", "offline"]: world.places.forEach { $0.cutUntil[device.number] = .max }
        case _ where words == ["comes", "online"]: world.places.forEach { $0.cutUntil[device.number] = nil }
        case ("syncs", 1): device.syncNow()
        case ("jumps", 3): device.clock += Int64(try Self.duration(words[1...]) / 1000)
        case ("rewrites", 4) where words[3] == "times":
            for round in 1...(Int(words[2]) ?? 1) { _ = device.set(words[1], "\(round)") }
        case ("stops", 1): device.stop(.restart)
        case _ where words == ["stops", "amid", "an", "upload"]: stopAmidUpload(device)
        case ("sees", 6) where words[1...3] == ["no", "heads", "for"]:
            let end = world.timeline.now + (try Self.duration(words[4...]))
            world.places.forEach { $0.headlessUntil[device.number] = end }
        case ("starts", 1): device.start()
        case ("crashes", 1): stop(device, .crash)
        case ("reboots", 1): stop(device, .reboot)
        case ("resolves", 1): device.resolve()
        case _ where words == ["loses", "its", "key"]: device.loseKey()
        case _ where words == ["enters", "the", "words"]: device.continueSync()
        case _ where words == ["moves", "to", "a", "key"]: device.moveToKey()
        case ("saves", 1): device.backUp()
        case ("restores", 1): try restore(device)
        case ("clones", 2), ("forks", 2): try copy(device, words[1], isFork: words[0] == "forks")
        default: throw Nonsense(clause: "this is nothing that \(name) can do")
        }
    }

    /// Returns an origin's number. Origins are random, so stories number them in the order in which they ask for them.
    private func origin(of device: WholeDevice) -> Int {
        guard let origin = device.origin else { return 0 }
        if !origins.contains(origin) { origins.append(origin) }
        return (origins.firstIndex(of: origin) ?? 0) + 1
    }

    /// `sets KEY TEXT`, or `sets KEY N bytes`.
    private static func text(_ words: [String]) -> String {
        if words.count == 4, words[3] == "bytes" { return String(repeating: "x", count: Int(words[2]) ?? 0) }
        return words.dropFirst(2).joined(separator: " ")
    }

    private func show(_ device: WholeDevice, _ name: String) {
        let values = device.shown.map { "\($0) = \($1)" }
        seen.append("\(name) shows \(values.isEmpty ? "nothing" : values.joined(separator: ", "))")
    }

    /// `NAME signs in [at work]`, `NAME signs out [and clears]`
    private func sign(_ device: WholeDevice, _ words: [String]) throws(Nonsense) {
        switch words {
        case ["in"]: device.signIn(to: world.places[0])
        case ["in", "at", "work"]: device.signIn(to: world.places[1])
        case ["out"]: device.signOut(keepingValues: true)
        case ["out", "and", "clears"]: device.signOut(keepingValues: false)
        default: throw .command
        }
    }

    /// Stops the device after it has written its next head, and before it gets the answer.
    private func stopAmidUpload(_ device: WholeDevice) {
        for place in world.places {
            let former = place.onHeadPut
            place.onHeadPut = { [world] writer, name in
                former(writer, name)
                guard writer == device.number else { return }
                place.onHeadPut = former
                world.timeline.after(0) { device.stop(.restart) }
            }
        }
    }

    private func stop(_ device: WholeDevice, _ ending: StopKind) {
        device.stop(ending)
        world.executor.drain()
        device.start()
    }

    private func restore(_ device: WholeDevice) throws(Nonsense) {
        device.stop(.restart)
        world.executor.drain()
        if !device.restore() { throw Nonsense(clause: "there is no backup") }
        device.start()
    }

    private func copy(_ original: WholeDevice, _ name: String, isFork: Bool) throws(Nonsense) {
        try add(name)
        let copy = world.addDevice()
        copy.copyDisk(of: original, isFork: isFork)
        for place in world.places { place.copyView(of: original.number, to: copy.number) }
        copy.start()
    }
}

extension WholeDevice {
    /// Sets a key to a text, or removes it.
    /// - Returns: why the write was refused; `nil` if it was not.
    func set(_ key: String, _ text: String?) -> String? {
        guard let process else { return "does not run" }
        let (store, key) = (process.store(0), Key(unchecked: key))
        do throws(EngineError) {
            try store.stage(
                setting: text.map { [(key, .string(Text($0)))] } ?? [], removing: text == nil ? [key] : [])
            try process.database.commit()
        } catch {
            if case .quota(let violation) = error { return "refused: \(violation.limit) \(violation.maximum)" }
            return "\(error)"
        }
        process.noteOwnWrite(0)
        return nil
    }

    /// The values that the store shows.
    var shown: [(String, String)] {
        var shown: [(String, String)] = []
        process?.store(0).forEachValue { key, value in
            guard case .string(let text) = value else { return }
            shown.append((key.string, text.utf8Count > 40 ? "\(text.utf8Count) bytes" : text.string))
        }
        return shown.sorted { $0.0 < $1.0 }
    }

    /// The account's state, in words.
    var stateDescription: String {
        guard let process else { return "off" }
        let error = process.sync.lastError.map { ": \($0.message)" } ?? ""
        return "\(process.sync.state)" + error
    }
}
