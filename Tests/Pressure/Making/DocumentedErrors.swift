// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The errors that the definition of the interface lists.
///
/// A method's comment lists them from "Errors" on, by their names or as those of another method. An interface's comment
/// lists those of all its methods in a paragraph that begins with "Every method", and the manager's comment those of
/// any call, in paragraphs that begin with "Any call".
public struct DocumentedErrors: Sendable {
    /// The full names of the errors that the definition explains, by their last words.
    private let explained: [String: String]
    private var common: Set<String> = []
    private var interfaces: [String: Set<String>] = [:]
    private var methods: [String: Set<String>] = [:]
    /// What the definition lists as an error or a method, and doesn't explain.
    public private(set) var unexplained: Set<String> = []

    /// The full names of all errors that the definition explains.
    public var all: Set<String> { Set(explained.values) }

    /// Reads a definition: `dbus/org.example.UbiquitousStore.xml`.
    public init(file path: String) throws {
        let definition = try String(contentsOfFile: path, encoding: .utf8)
        explained = Self.explained(in: definition)
        var references: [String: Set<String>] = [:]
        var interface = ""
        for part in definition.split(separator: "<!--") {
            let sides = part.split(separator: "-->", maxSplits: 1)
            guard sides.count == 2, let element = sides[1].firstMatch(of: #/<(interface|method) name="([^"]+)"/#) else {
                continue
            }
            if element.1 == "interface" {
                interface = String(element.2)
                noteInterface(interface, comment: sides[0])
                continue
            }
            let list = Self.list(in: sides[0])
            methods["\(interface).\(element.2)"] = errors(in: list)
            references["\(interface).\(element.2)"] = Set(
                list.matches(of: #/those\s+of\s+(\w+)\(\)/#).map { "\(interface).\($0.1)" })
        }
        unexplained.formUnion(references.values.joined().filter { methods[$0] == nil })
        // A method may refer to one that refers to another.
        for _ in references {
            for (method, others) in references {
                let further = others.flatMap { methods[$0] ?? [] }
                methods[method]?.formUnion(further)
            }
        }
    }

    /// Returns the full names of the errors that a call may get: any, if the interface isn't one of the definition's.
    public func names(interface: String?, member: String?) -> Set<String> {
        guard let interface, let ofInterface = interfaces[interface] else { return all }
        return common.union(ofInterface).union(methods["\(interface).\(member ?? "")"] ?? [])
    }

    private static func explained(in definition: String) -> [String: String] {
        guard let section = definition.firstMatch(of: #/\*\*Errors\*\*([\s\S]*?)-->/#)?.1 else { return [:] }
        var names: [String: String] = [:]
        for match in section.matches(of: #/\* ``([A-Z]\w+)``:/#) {
            names[String(match.1)] = "org.example.UbiquitousStore.Error.\(match.1)"
        }
        let standard = section.firstMatch(of: #/Names below ``org\.freedesktop\.DBus\.Error\.``:((?:.+\n)+)/#)?.1 ?? ""
        for match in standard.matches(of: #/``([A-Z]\w+)``/#) {
            names[String(match.1)] = "org.freedesktop.DBus.Error.\(match.1)"
        }
        return names
    }

    private mutating func noteInterface(_ interface: String, comment: Substring) {
        var ofInterface: Set<String> = []
        for paragraph in comment.split(separator: "\n\n") {
            let text = paragraph.drop(while: \.isWhitespace)
            if text.hasPrefix("Any call") { common.formUnion(errors(in: text)) }
            if text.hasPrefix("Every method") { ofInterface.formUnion(errors(in: text)) }
        }
        interfaces[interface] = ofInterface
    }

    /// Returns the part of a method's comment that lists its errors.
    private static func list(in comment: Substring) -> Substring {
        guard let beginning = comment.firstRange(of: #/\n\s*Errors[:;]/#) else { return "" }
        return comment[beginning.upperBound...]
    }

    private mutating func errors(in text: Substring) -> Set<String> {
        var found: Set<String> = []
        for match in text.matches(of: #/``(?:org\.freedesktop\.DBus\.Error\.)?([A-Z]\w+)``/#) {
            if let name = explained[String(match.1)] {
                found.insert(name)
            } else {
                unexplained.insert(String(match.1))
            }
        }
        return found
    }
}
