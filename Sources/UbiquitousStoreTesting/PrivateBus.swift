// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
public import SDBus

/// A private message bus: a real `dbus-daemon` or `dbus-broker`, which ends when this object is released.
public final class PrivateBus: Sendable {
    /// The bus's program.
    public enum Program: String, Sendable {
        /// The reference implementation.
        case daemon = "dbus-daemon"
        /// The implementation that some distributions use instead. Only root can start it.
        case broker = "dbus-broker"

        /// The program that `$UBIQUITOUS_STORE_TEST_BUS` names; `dbus-daemon` by default.
        public static var usual: Self {
            ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_TEST_BUS"].flatMap(Self.init) ?? .daemon
        }
    }

    /// The bus's policy.
    public enum Kind: Sendable {
        /// A session bus's policy: one user and root may do everything.
        case session
        /// The policy and the limits of Debian's system bus.
        ///
        /// - Parameters:
        ///   - policy: the service's policy file.
        ///   - serviceUser: the user to replace `_ubiquitous-store` with.
        case system(policy: String, serviceUser: UInt32)
    }

    /// The bus's address.
    public var address: String { "unix:path=\(directory.path)/bus" }
    /// The bus's address, for a connection.
    public var busAddress: BusAddress { .address(address) }

    /// The bus's program.
    public let program: Program
    private let directory: TemporaryDirectory
    /// dbus-broker exits without a journal.
    private let journal: JournalSocket?
    private let process: ChildProcess

    /// Starts a bus, and waits until it can be connected to.
    /// - Throws: ``StartFailure``, with the bus's output.
    public static func start(_ kind: Kind = .session, program: Program = .usual) async throws -> PrivateBus {
        let bus = try PrivateBus(kind, program)
        try await bus.waitUntilReady()
        return bus
    }

    private init(_ kind: Kind, _ program: Program) throws {
        self.program = program
        directory = try TemporaryDirectory()
        journal = program == .broker ? try JournalSocket(directory.path + "/journal") : nil
        let configuration = directory.path + "/bus.conf"
        try Self.configuration(kind, program, in: directory.path)
            .write(toFile: configuration, atomically: true, encoding: .utf8)
        process = try ChildProcess(
            Self.command(program, in: directory.path), output: ("/dev/null", directory.path + "/log"))
    }

    private static func command(_ program: Program, in directory: String) -> [String] {
        switch program {
        case .daemon: ["dbus-daemon", "--config-file=\(directory)/bus.conf", "--nofork", "--nopidfile"]
        // dbus-broker gets its socket from systemd, writes to the journal, and is a client of its own bus.
        case .broker:
            [
                "unshare", "--mount", "--propagation", "private", "sh", "-ec",
                """
                mount -t tmpfs tmpfs /run
                mkdir -p /run/systemd/journal
                ln -s "$1/journal" /run/systemd/journal/socket
                export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$1/bus"
                exec systemd-socket-activate -E DBUS_SYSTEM_BUS_ADDRESS --listen="$1/bus" \\
                    dbus-broker-launch --config-file="$1/bus.conf" --scope=system
                """, "sh", directory,
            ]
        }
    }

    private func waitUntilReady() async throws {
        try await eventually("the bus can be connected to") {
            if process.exit != nil {
                throw StartFailure(description: "\(program.rawValue) ended: \(log)")
            }
            return UnixSocket.canConnect(directory.path + "/bus")
        }
        chmod(directory.path + "/bus", 0o666)
    }

    /// The bus's output.
    public var log: String {
        (try? String(contentsOfFile: directory.path + "/log", encoding: .utf8)) ?? ""
    }

    /// Ends the bus at once, and breaks all connections.
    public func end() {
        process.kill()
    }

    // MARK: Configuration

    private static func configuration(_ kind: Kind, _ program: Program, in directory: String) throws -> String {
        let rules: String
        switch kind {
        case .session: rules = sessionRules
        case .system(let policy, let user):
            let service = "\(directory)/service.conf"
            try String(contentsOfFile: policy, encoding: .utf8)
                .replacing("user=\"_ubiquitous-store\"", with: "user=\"\(user)\"")
                .write(toFile: service, atomically: true, encoding: .utf8)
            rules = systemRules + (program == .daemon ? systemLimits : "") + "<include>\(service)</include>"
        }
        return """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
              "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <listen>unix:path=\(directory)/bus</listen>
              <auth>EXTERNAL</auth>
              \(rules)
            </busconfig>
            """
    }

    /// From /usr/share/dbus-1/session.conf.
    private static let sessionRules = """
        <type>session</type>
        <policy context="default">
          <allow send_destination="*" eavesdrop="true"/>
          <allow eavesdrop="true"/>
          <allow own="*"/>
        </policy>
        <limit name="max_incoming_bytes">1000000000</limit>
        <limit name="max_outgoing_bytes">1000000000</limit>
        <limit name="max_message_size">1000000000</limit>
        <limit name="max_connections_per_user">100000</limit>
        <limit name="max_match_rules_per_connection">50000</limit>
        <limit name="max_replies_per_connection">50000</limit>
        """

    /// From Debian 12's /usr/share/dbus-1/system.conf.
    private static let systemRules = """
        <type>system</type>
        <policy context="default">
          <allow user="*"/>
          <deny own="*"/>
          <deny send_type="method_call"/>
          <allow send_type="signal"/>
          <allow send_requested_reply="true" send_type="method_return"/>
          <allow send_requested_reply="true" send_type="error"/>
          <allow receive_type="method_call"/>
          <allow receive_type="method_return"/>
          <allow receive_type="error"/>
          <allow receive_type="signal"/>
          <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
          <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Introspectable"/>
          <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Properties"/>
          <deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"
            send_member="UpdateActivationEnvironment"/>
          <deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Debug.Stats"/>
        </policy>
        <policy user="root">
          <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
          <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Debug.Stats"/>
        </policy>
        """

    /// The limits of dbus-daemon, which the same file documents. dbus-broker has its own defaults, and would misread
    /// these: it takes a user's limit to be the product of a connection's limit and the number of connections.
    private static let systemLimits = """
        <limit name="max_incoming_bytes">133169152</limit>
        <limit name="max_incoming_unix_fds">64</limit>
        <limit name="max_outgoing_bytes">133169152</limit>
        <limit name="max_outgoing_unix_fds">64</limit>
        <limit name="max_message_size">33554432</limit>
        <limit name="max_message_unix_fds">16</limit>
        <limit name="auth_timeout">5000</limit>
        <limit name="pending_fd_timeout">150000</limit>
        <limit name="max_completed_connections">2048</limit>
        <limit name="max_incomplete_connections">64</limit>
        <limit name="max_connections_per_user">256</limit>
        <limit name="max_names_per_connection">512</limit>
        <limit name="max_match_rules_per_connection">512</limit>
        <limit name="max_replies_per_connection">128</limit>
        """
}
