// SPDX-License-Identifier: Apache-2.0

internal import DefaultsDomains
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Completes the words after `defaults`: a verb, a domain, a key, and the type of a value.
enum DefaultsCompletion {
    private static let options = ["--bus", "--user"]

    static func words(_ arguments: [String], _ index: Int) -> [String] {
        let before = CompletionQuestion.whole(Array(arguments.prefix(index)))
        guard let start = before.firstIndex(of: "defaults") else { return [] }
        var rest = before[(start + 1)...].filter { $0 != "-currentHost" }[...]
        _ = OptionWords.take(from: &rest)
        let words = Array(rest)
        let isCurrentHost = before.contains("-currentHost")
        switch words.count {
        case 0: return DefaultsWords.Verb.allCases.map(\.rawValue).sorted()
        case 1 where DefaultsWords.takesDomain(words[0]): return domains(arguments)
        case 2 where DefaultsWords.takesDomain(words[0]): return keys(arguments, words[1], isCurrentHost)
        case 3 where words[0] == "write": return TypedWords.types + ["-array-add", "-dict-add"]
        default: return []
        }
    }

    private static func domains(_ arguments: [String]) -> [String] {
        CompletionQuestion.ask(arguments, options) { (options: ServiceOptions) in
            let connection = try await options.connect()
            return try await connection.domains(ofUser: try options.uid())
        }
    }

    private static func keys(_ arguments: [String], _ domain: String, _ isHost: Bool) -> [String] {
        let name = ["-g", "-globalDomain"].contains(domain) ? DefaultsWords.globalDomain : Text(domain)
        return CompletionQuestion.ask(arguments, options) { (options: ServiceOptions) in
            let connection = try await options.connect()
            let place = LayerAddress(name, isHost: isHost, uid: try options.uid())
            return try await connection.snapshot(place).values.keys.sorted().map(\.string)
        }
    }
}
