// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import StoreEngine
internal import SyncEngine

/// Where a scenario is played.
final class Stage {
    private var conditions = Conditions()
    private lazy var world = makeWorld()
    private var names: [String] = []
    private var seen: [String] = []

    init() { conditions.places = 2 }

    func end() { world.end() }

    private func makeWorld() -> World<WholeDevice> {
        let plan = Plan(conditions: conditions, steps: [])
        let world = World<WholeDevice>(seed: 1, plan: plan, isOrderly: true, trace: Trace(nil))
        world.onNotice = { [unowned self] device, notice in
            let keys = notice.keys.map(\.string).joined(separator: ", ")
            seen.append("\(names[device]) is told: \(notice.reason), \(keys.isEmpty ? "no keys" : keys)")
        }
        return world
    }

    /// Does what commands say.
    /// - Returns: what was seen.
    func perform(_ commands: [String]) -> [String] {
        seen = []
        for command in commands {
            let words: [Substring] = command.split(separator: " " as Character)
            obey(words.map { "\($0)" })
            world.executor.drain()
            world.timeline.run(for: 0)
        }
        if let violation = world.violation { seen.append("BROKEN: \(violation)") }
        return seen.isEmpty ? ["ok"] : seen
    }

    private func obey(_ words: [String]) {
        switch (words[0], words.count) {
        case ("folder", 1): conditions.isFolder = true
        case ("limit", 3): conditions.limits = Limits(keys: Int(words[1]) ?? 0)
        case ("wait", 3): world.timeline.run(for: Self.duration(words[1], words[2]))
        case ("device", _): addDevice(words)
        case ("carry", _): carry(words)
        case ("empty", _): world.places[0].empty()
        case ("remote", _): seen.append(remote(words.last ?? ""))
        default:
            guard let device = device(words[0]) else { return seen.append("there is no \(words[0])") }
            perform(device, words[0], Array(words.dropFirst()))
        }
    }

    private func device(_ name: String) -> WholeDevice? { names.firstIndex(of: name).map { world.devices[$0] } }

    /// `device NAME [N years ahead]`
    private func addDevice(_ words: [String]) {
        names.append(words[1])
        let device = world.addDevice()
        if words.count > 2 { device.clock = Int64(Self.duration(words[2], words[3]) / 1000) }
        for place in world.places { place.isCarriedByHand = conditions.isFolder }
        device.start()
    }

    /// `carry heads|segments|all NAME NAME`
    private func carry(_ words: [String]) {
        guard let from = names.firstIndex(of: words[2]), let to = names.firstIndex(of: words[3]) else { return }
        let folder = ["heads": "h/", "segments": "s/", "markers": "a/"][words[1]] ?? ""
        world.places[0].carryAll(below: folder, from: from, to: to)
    }

    /// `remote seen by NAME`
    private func remote(_ name: String) -> String {
        let objects = world.places[0].names(seenBy: names.firstIndex(of: name) ?? 0)
        func count(_ folder: String) -> Int { objects.count { $0.hasPrefix(folder) } }
        return "\(count("a/")) accounts, \(count("h/")) heads, \(count("s/")) segments"
    }

    private static func duration(_ number: String, _ unit: String) -> UInt64 {
        let units = ["second": second, "minute": minute, "hour": hour, "day": day, "year": 365 * day]
        let name = unit.hasSuffix("s") ? String(unit.dropLast()) : unit
        return (UInt64(number) ?? 0) * (units[name] ?? 0)
    }

    // MARK: What devices do

    private func perform(_ device: WholeDevice, _ name: String, _ words: [String]) {
        switch words[0] {
        case "sets": device.set(words[1], Self.text(words)).map { seen.append("\(name): \($0)") }
        case "removes": device.set(words[1], nil).map { seen.append("\(name): \($0)") }
        case "shows": show(device, name)
        case "state": seen.append("\(name) is \(device.stateDescription)")
        case "signs": sign(device, words)
        case "goes": world.places.forEach { $0.cutUntil[device.number] = .max }
        case "comes": world.places.forEach { $0.cutUntil[device.number] = nil }
        case "syncs": device.syncNow()
        case "stops": device.stop(.restart)
        case "starts": device.start()
        case "crashes": stop(device, .crash)
        case "reboots": stop(device, .reboot)
        case "resolves": device.resolve()
        case "saves": device.backUp()
        case "restores": restore(device)
        case "clones", "forks": copy(device, words[1], isTwin: words[0] == "forks")
        default: seen.append("\(words[0]) is nothing that \(name) can do")
        }
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
    private func sign(_ device: WholeDevice, _ words: [String]) {
        if words[1] == "in" {
            device.signIn(to: world.places[words.last == "work" ? 1 : 0])
        } else {
            device.signOut(keepingValues: words.last != "clears")
        }
    }

    private func stop(_ device: WholeDevice, _ ending: Ending) {
        device.stop(ending)
        world.executor.drain()
        device.start()
    }

    private func restore(_ device: WholeDevice) {
        device.stop(.restart)
        world.executor.drain()
        if !device.restore() { seen.append("there is no backup") }
        device.start()
    }

    private func copy(_ original: WholeDevice, _ name: String, isTwin: Bool) {
        names.append(name)
        let copy = world.addDevice()
        copy.copyDisk(of: original, isTwin: isTwin)
        for place in world.places { place.copyView(of: original.number, to: copy.number) }
        copy.start()
    }
}

extension WholeDevice {
    /// Sets a key to a text, or removes it.
    /// - Returns: why it was refused.
    func set(_ key: String, _ text: String?) -> String? {
        guard let process else { return "does not run" }
        let (store, key) = (process.store(0), Key(unchecked: key))
        do throws(EngineError) {
            try store.stage(
                setting: text.map { [(key, .string(Text($0)))] } ?? [], removing: text == nil ? [key] : [])
            try process.database.commit()
        } catch {
            if case .quota(let violation) = error { return "refused: \(violation.limit.rawValue) \(violation.maximum)" }
            return "\(error)"
        }
        process.noteOwnWrite(0)
        return nil
    }

    /// What the store shows.
    var shown: [(String, String)] {
        var shown: [(String, String)] = []
        process?.store(0).forEachValue { key, value in
            guard case .string(let text) = value else { return }
            shown.append((key.string, text.utf8Count > 40 ? "\(text.utf8Count) bytes" : text.string))
        }
        return shown.sorted { $0.0 < $1.0 }
    }

    /// What the account's state is, in words.
    var stateDescription: String {
        guard let process else { return "off" }
        let error = process.sync.lastError.map { ": \($0.message)" } ?? ""
        return process.sync.state.rawValue + error
    }
}
