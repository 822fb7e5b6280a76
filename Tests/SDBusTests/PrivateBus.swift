// SPDX-License-Identifier: Apache-2.0

import Foundation
import SDBus

/// A private message bus for a test. It ends when it is released.
final class PrivateBus {
    let address: BusAddress
    private let daemon = Process()
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("sdbus-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let output = Pipe()
        daemon.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        daemon.arguments = [
            "dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address",
            "--address=unix:dir=\(directory.path)",
        ]
        daemon.standardOutput = output
        try daemon.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        address = .address(line.trimmingCharacters(in: .newlines))
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Kills the daemon.
    func kill() {
        guard daemon.isRunning else { return }
        // Not waitUntilExit(): programs that other tests start inherit the descriptor that it waits for, so it would
        // wait for them as well.
        Foundation.kill(daemon.processIdentifier, SIGKILL)
    }

    @BusActor
    func connect(_ description: String = "test") throws -> BusConnection {
        // Tests call libsystemd, which reads the socket itself then.
        try BusConnection.open(address, description: description, leavingFilteringToBus: true)
    }
}

struct Timeout: Error {}

/// Waits until `condition` is true. Fails after a minute and ten checks, because machines that run tests may be busy.
@BusActor
func eventually(_ condition: @BusActor () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    var looks = 0
    while !condition() {
        looks += 1
        if ContinuousClock.now >= end, looks >= 10 { throw Timeout() }
        try await Task.sleep(for: .milliseconds(5))
    }
}
