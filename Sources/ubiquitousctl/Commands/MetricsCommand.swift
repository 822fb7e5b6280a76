// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `metrics`.
struct MetricsCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Prints the state of all users' accounts for a monitoring system; for root.",
        discussion: """
            The text is OpenMetrics, as node_exporter's textfile collector reads it. Write it to a temporary file and \
            rename that. It contains numbers and users' names, but no app's name.
            """)

    @OptionGroup var bus: BusOptions

    func perform() async throws {
        let text = try await Progress.showing("Waiting for the service") {
            let connection = try await bus.connect()
            let service = try await connection.manager.properties()
            let aside = try await AdministrationObject(connection).data().filter(\.isSetAsideForName)
            return Metrics.text(
                try await Everybody(connection), settingsErrors: service.settingsErrors.count,
                warnings: service.warnings.count, setAside: aside)
        }
        Output.print(text)
    }
}

/// Metrics in the text format of OpenMetrics.
enum Metrics {
    /// - Parameters:
    ///   - settingsErrors: the number of invalid lines in the settings.
    ///   - warnings: the number of files and folder roots that the service can't use.
    ///   - aside: the data of users that was set aside because of their names.
    static func text(
        _ everybody: Everybody, settingsErrors: Int, warnings: Int, setAside aside: [UserDataDescription]
    ) -> String {
        let users = everybody.users
        let accounts = users.map(\.account)
        let signedIn = users.filter { $0.account.isSignedIn }
        var lines = family("accounts", "Accounts of users on this device, by the state of their sync.")
        lines += AccountStatus.all.map { status in
            sample("accounts", [("state", status.rawValue)], accounts.count { $0.state == status })
        }
        lines += family("errors", "Accounts that have an error, by its name.")
        for (name, errors) in Dictionary(grouping: accounts.compactMap(\.lastError), by: \.code.description)
            .sorted(by: { $0.key < $1.key })
        {
            lines.append(sample("errors", [("name", name)], errors.count))
        }
        lines += family("pending_changes", "Changes of a user that wait for their upload.")
        lines += signedIn.map { sample("pending_changes", [("user", $0.name)], $0.account.pendingChanges) }
        lines += family("last_success_timestamp_seconds", "When a user's account was last synced with its remote.")
        lines += signedIn.map {
            let last = max($0.account.lastPull, $0.account.lastPush) / 1_000_000
            return sample("last_success_timestamp_seconds", [("user", $0.name)], Int(clamping: last))
        }
        lines += family("databases_set_aside", "Damaged databases of a user that were set aside.")
        lines += users.map { sample("databases_set_aside", [("user", $0.name)], $0.account.databasesSetAside.count) }
        lines += family("data_set_aside", "Data that was set aside because its user id has another user's name.")
        lines += Dictionary(grouping: aside, by: \.user).sorted { $0.key < $1.key }.map {
            sample("data_set_aside", [("user", $0.key)], $0.value.count)
        }
        lines += family("unreadable_users", "Users whose data can't be opened.")
        lines += everybody.unreadable.map { sample("unreadable_users", [("user", $0)], 1) }
        lines += family("free_bytes", "Bytes that are left for the data of users.")
        if let free = accounts.map(\.freeBytes).min() { lines.append(sample("free_bytes", [], Int(free))) }
        lines += family("settings_errors", "Invalid lines in the settings.")
        lines.append(sample("settings_errors", [], settingsErrors))
        lines += family(
            "warnings", "Manifests, files of managed settings, their groups, and folder roots that can't be used.")
        lines.append(sample("warnings", [], warnings))
        return (lines + ["# EOF"]).joined(separator: "\n")
    }

    private static func family(_ name: String, _ help: String) -> [String] {
        ["# TYPE ubiquitous_store_\(name) gauge", "# HELP ubiquitous_store_\(name) \(help)"]
    }

    private static func sample(_ name: String, _ labels: [(String, String)], _ value: Int) -> String {
        let text = labels.map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",")
        return "ubiquitous_store_\(name)\(text.isEmpty ? "" : "{\(text)}") \(value)"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
