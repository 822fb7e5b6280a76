// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Logging
internal import PlainText

/// Logs to standard error: for the journal with the priorities of sd-daemon(3), otherwise with the levels' names.
struct JournalLogHandler: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    private static let longestLine = 8192
    private let writesForJournal = ProcessEnvironment["JOURNAL_STREAM"] != nil

    init(logLevel: Logger.Level) {
        self.logLevel = logLevel
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        // Text that callers influence must not make lines of its own, control a terminal, or fill the journal.
        let text = "\(event.message)".replacing("\n", with: " ").cleaned(atMost: Self.longestLine)
        let prefix = writesForJournal ? "<\(priority(event.level))>" : "\(event.level): "
        var line = "\(prefix)\(text)\n"
        // One write is one line, even if others write to the same file.
        _ = line.withUTF8 { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// See syslog(3).
    private func priority(_ level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
