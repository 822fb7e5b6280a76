// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import UbiquitousStore

/// What writing some values would change in a store.
struct Plan: Equatable {
    /// The change of one key.
    struct Step: Equatable {
        let key: Text
        /// The present value; `nil` if there is none.
        let old: Value?
        /// The new value; `nil` to remove the key.
        let new: Value?
    }

    /// The changes, sorted by key; empty if nothing would change.
    let steps: [Step]
    /// The number of keys after the change, and the total size of their values in bytes.
    private let keys: Int
    private let bytes: Int
    /// By how much the store grows.
    private let growth: (keys: Int, bytes: Int)

    /// Compares the wanted values with the present ones.
    init(_ wanted: [Text: Value?], on present: [Text: Value]) {
        steps = wanted.filter { present[$0.key] != $0.value }
            .map { Step(key: $0.key, old: present[$0.key], new: $0.value) }
            .sorted { $0.key < $1.key }
        growth = steps.reduce((keys: 0, bytes: 0)) { sum, step in
            let keys = (step.new == nil ? 0 : 1) - (step.old == nil ? 0 : 1)
            return (sum.keys + keys, sum.bytes + (step.new?.size ?? 0) - (step.old?.size ?? 0))
        }
        keys = present.count + growth.keys
        bytes = present.values.reduce(0) { $0 + $1.size } + growth.bytes
    }

    static func == (left: Plan, right: Plan) -> Bool { left.steps == right.steps }

    /// The changes to write to the store.
    var changes: [Text: Value?] {
        Dictionary(uniqueKeysWithValues: steps.map { ($0.key, $0.new) })
    }

    /// Refuses what the service would refuse anyway, to name the key.
    ///
    /// - Parameter limits: the limits of a store, or of a layer of a domain.
    /// - Throws: ``Failure``.
    func checkValues(_ limits: Limits = .standard) throws {
        for step in steps {
            guard let value = step.new else { continue }
            do {
                _ = try Key(step.key.string, limit: limits.keyLength)
                try value.validate(limits)
            } catch {
                throw Failure(.refused, "The value for \(Output.quoted(step.key.string)) can't be stored. \(error)")
            }
        }
    }

    /// Refuses changes that exceed the store's total limits.
    ///
    /// Only the service knows for certain, because it counts device-local values separately.
    ///
    /// - Throws: ``Failure``.
    func checkTotals(_ limits: Limits) throws {
        if growth.keys > 0 && keys > limits.keys {
            throw Failure(.refused, "The store would have \(keys) keys, and may have \(limits.keys).")
        }
        if growth.bytes > 0 && bytes > limits.totalBytes {
            throw Failure(
                .refused, "The store would have \(bytes) bytes, and may have \(limits.totalBytes).",
                advice: "\"ubiquitousctl usage\" shows what takes up the space.")
        }
    }
}
