// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Makes the changes that a command asks for, in a store.
@BusActor
struct Change {
    let store: StoreObject
    let options: ChangeOptions

    /// Makes the store hold the wanted values. Values that it already holds are no change.
    ///
    /// - Parameters:
    ///   - isGuarded: whether the wanted values depend on all present ones; then a write meanwhile starts over.
    ///   - wanted: returns keys with their values, `nil` to remove them, given the present values.
    func make(guarded isGuarded: Bool = false, _ wanted: ([Text: Value]) throws -> [Text: Value?]) async throws {
        for _ in 0..<10 {
            do {
                return try await attempt(guarded: isGuarded, wanted)
            } catch let error as UbiquitousStoreError where error.code == .conflict { continue }
        }
        throw Failure(.refused, "Another program keeps changing the store.", advice: "Try again.")
    }

    private func attempt(guarded isGuarded: Bool, _ wanted: ([Text: Value]) throws -> [Text: Value?]) async throws {
        let snapshot = try await store.snapshot()
        let wanted = try wanted(snapshot.values).filter { $0.value != nil || snapshot.values[$0.key] != nil }
        let plan = Plan(wanted, on: snapshot.values)
        try plan.checkValues()
        if options.check {
            try plan.checkTotals(try await store.properties().limits)
        } else if !wanted.isEmpty {
            // Also what the store shows already: until the account has arrived, that may be another account's value.
            try await store.apply(wanted, ifGeneration: isGuarded ? snapshot.generation : nil, timeout: .seconds(60))
            if !plan.steps.isEmpty { Output.noteChange() }
        }
        report(plan)
    }

    private func report(_ plan: Plan) {
        if options.json {
            let changes = plan.steps.map { Value.dictionary($0.description) }
            Output.print(json: ["changed": .boolean(!plan.steps.isEmpty), "changes": .array(changes)])
        } else if options.check {
            plan.printSteps()
        }
    }
}

extension Plan {
    /// Prints the changes that would be made.
    func printSteps() {
        for step in steps { Output.print(step.sentence) }
        if steps.isEmpty { Output.print("nothing would change") }
    }
}

extension Plan.Step {
    fileprivate var description: [Text: Value] {
        var description: [Text: Value] = ["key": .string(key)]
        description["old"] = old
        description["new"] = new
        return description
    }

    fileprivate var sentence: String {
        let key = ValueText.word(key: key)
        return switch (old, new) {
        case (nil, let new?): "would set \(key) = \(ValueText.beginning(new))"
        case (let old?, let new?): "would set \(key) = \(ValueText.beginning(new)) (now \(ValueText.beginning(old)))"
        default: "would remove \(key)"
        }
    }
}
