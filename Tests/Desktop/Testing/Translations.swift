// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquitousStoreTesting

/// The message catalogs in `po`.
public enum Translations {
    /// Whether gettext's tools are installed.
    public static let areAvailable = ["xgettext", "msgcmp", "msgfmt"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)")
    }

    /// The languages besides English.
    public static let languages = ["de"]

    /// The German texts by the English ones, without the underscores of mnemonics.
    static let german = Dictionary(
        texts(in: "de").map { ($0.key.replacing("_", with: ""), $0.value.replacing("_", with: "")) }
    ) { first, _ in first }

    /// Returns a language's texts by the English ones.
    public static func texts(in language: String) -> [String: String] {
        let file = URL(filePath: #filePath).appending(path: "../../../../po/\(language).po").standardizedFileURL
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { return [:] }
        let pairs = text.matches(of: /msgid "(.+)"\nmsgstr "(.+)"/).map { (String($0.1), String($0.2)) }
        return Dictionary(pairs) { first, _ in first }
    }

    /// An error in the catalogs.
    public struct Flaw: Error, CustomStringConvertible {
        /// The script's output.
        public let description: String
    }

    /// Compiles the catalogs into a directory of locales.
    /// - Throws: ``Flaw``.
    static func compile(into directory: String) async throws { try await run("compile", directory) }

    /// Calls `script/translations`.
    /// - Throws: ``Flaw``.
    public static func run(_ arguments: String...) async throws {
        let script = URL(filePath: #filePath).appending(path: "../../../../script/translations")
        let log = try TemporaryDirectory()
        let process = try ChildProcess(
            ["sh", script.standardizedFileURL.path] + arguments, output: (log.path + "/log", log.path + "/log"))
        if try await process.finish() == .code(0) { return }
        throw Flaw(description: (try? String(contentsOfFile: log.path + "/log", encoding: .utf8)) ?? "")
    }
}
