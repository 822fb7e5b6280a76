// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus

/// The program under the name `defaults`, with macOS's words, messages and exit codes.
enum DefaultsProgram {
    /// Whether the process was called by that name.
    static func isCalled(_ program: String?) -> Bool { program?.split(separator: "/").last == "defaults" }

    static func main(_ arguments: [String]) -> Never {
        let code = EventLoop.runOnThisThread {
            do {
                try await run(arguments)
                return Output.finish().rawValue
            } catch {
                let failure = error is ReportedFailure ? nil : Failure(error)
                if let failure { Output.write("\(failure.message)\n", to: 2) }
                return 1
            }
        }
        Glibc.exit(code)
    }

    @BusActor
    private static func run(_ arguments: [String]) async throws {
        if arguments.isEmpty || arguments == ["help"] { return Output.print(DefaultsCommand.helpMessage()) }
        let words = try DefaultsWords(arguments)
        if words.verb == .managed { return try ManagedCheck.run(words.rest) }
        let options = try ServiceOptions.parse([])
        let uid = try options.uid()
        let connection = try await options.connect()
        try await DefaultsCall(connection: connection, uid: uid, words: words, form: .oldStyle, isCheck: false).run()
    }
}
