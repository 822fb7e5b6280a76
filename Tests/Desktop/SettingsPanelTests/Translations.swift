// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import UbiquitousStoreTesting

/// The catalogues below `po`.
enum Translations {
    /// Whether gettext's tools are installed.
    static let areAvailable = ["xgettext", "msgcmp", "msgfmt"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0)")
    }

    /// Compiles them into a directory of locales.
    static func compile(into directory: String) async throws {
        let result = try await run("compile", directory)
        #expect(result.isSuccess, "\(result.output)")
    }

    static func run(_ arguments: String...) async throws -> (isSuccess: Bool, output: String) {
        let script = URL(filePath: #filePath).appending(path: "../../../../script/translations")
        let log = try TemporaryDirectory()
        let process = try ChildProcess(
            ["sh", script.standardizedFileURL.path] + arguments, output: (log.path + "/log", log.path + "/log"))
        let isSuccess = try await process.finish() == .code(0)
        return (isSuccess, (try? String(contentsOfFile: log.path + "/log", encoding: .utf8)) ?? "")
    }
}

@Suite(.enabled(if: Translations.areAvailable, "gettext is not installed"))
struct TranslationTests {
    @Test func `every text of the windows and the notifications is translated`() async throws {
        let result = try await Translations.run("check")
        #expect(result.isSuccess, "\(result.output)")
    }
}
