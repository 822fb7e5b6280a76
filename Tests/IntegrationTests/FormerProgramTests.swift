// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import ServerTesting
import Testing
import UbiquitousStoreTesting

/// A version from before encryption, in one account with this version; `script/full former` builds it.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct FormerProgramTests {
    private nonisolated static let program = ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_TEST_FORMER"]

    /// The kind of the account's remote.
    enum Remote: CaseIterable {
        case folder, etcd

        static var installed: [Remote] { EtcdCluster.isInstalled ? allCases : [.folder] }
    }

    /// Runs a test with this version on the laptop, and the former one on the phone.
    private func withDevices(
        in remote: Remote, _ body: @BusActor (TwoDevices, _ contents: () throws -> [String]) async throws -> Void
    ) async throws {
        let cluster = remote == .etcd ? try await elsewhere { try EtcdCluster() } : nil
        try await withTwoDevices {
            if $0.name == "phone" { $0.program = Self.program }
        } _: { devices in
            if let cluster { devices.url = cluster.url() }
            try await body(devices) { try cluster.map(Self.rows) ?? Self.files(below: devices.folder) }
        }
    }

    /// Returns every row with its value, and how often and when it was written.
    private static func rows(of cluster: EtcdCluster) throws -> [String] {
        // Without the fields that describe the cluster.
        try cluster.control(["get", "--prefix", "", "-w", "fields"]).split(separator: "\n").map(String.init)
            .filter { !$0.contains("\"ClusterID\"") && !$0.contains("\"MemberID\"") && !$0.contains("\"RaftTerm\"") }
    }

    /// Returns every file with its contents, inode and time, so that replacing a file by an equal one shows.
    private static func files(below folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).sorted().compactMap { name in
            var status = stat()
            // A file under a temporary name may be gone by now.
            guard lstat(folder + "/" + name, &status) == 0 else { return nil }
            let bytes = FileManager.default.contents(atPath: folder + "/" + name) ?? Data()
            return "\(name) \(status.st_ino) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec) "
                + bytes.base64EncodedString()
        }
    }

    @Test(.enabled(if: program != nil, "only script/full builds the program from before"), arguments: Remote.installed)
    func `the former program can't come into an encrypted account, and touches nothing there`(
        in remote: Remote
    ) async throws {
        try await withDevices(in: remote) { devices, contents in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await laptop.join(devices.url, ["encrypt": .boolean(true)])
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            try await eventually("everything is uploaded") {
                try await laptop.syncNow()
                return try await laptop.property("PendingChanges") == .integer(0)
            }
            try await laptop.setPaused(true)
            let before = try contents()
            for _ in 0..<2 {
                #expect(await errorName { try await phone.signIn(devices.url) } == "RemoteFormatTooNew")
                #expect(try await phone.state() == "signed-out")
            }
            #expect(try contents() == before)
        }
    }

    @Test(.enabled(if: program != nil, "only script/full builds the program from before"), arguments: Remote.installed)
    func `the former program stops where its account has moved, and comes back with its writes once it is replaced`(
        in remote: Remote
    ) async throws {
        try await withDevices(in: remote) { devices, contents in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await devices.join()
            try await devices.store(devices.laptop).set("favourite-colour", "vermilion-and-teal")
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            _ = try await devices.converge()
            try await phone.setPaused(true)
            try await devices.store(devices.phone).set("away", "kept")
            try await laptop.encrypt()
            let phrase = try await laptop.recoveryPhrase(flags: 1)
            devices.laptop.keepSecret(phrase)
            try await laptop.syncNow()
            try await laptop.setPaused(true)
            let before = try contents()
            try await phone.setPaused(false)
            // First in the process that has seen the account unencrypted, then after a restart.
            for _ in 0..<2 {
                #expect(await errorName { try await devices.account(devices.phone).syncNow() } == "RemoteFormatTooNew")
                try await devices.store(devices.phone).set("later", "kept, too")
                #expect(await errorName { try await devices.account(devices.phone).syncNow() } == "RemoteFormatTooNew")
                try await devices.phone.restart()
            }
            #expect(try contents() == before)

            // This version, installed over the former one, takes over its state.
            devices.phone.kill()
            try await laptop.setPaused(false)
            var options = Device.Options()
            (options.name, options.stateDirectory) = ("phone", devices.phone.stateDirectory)
            options.manifests = [ManifestText(notes)]
            let present = try await Device.start(on: devices.phone.bus, options)
            present.keepSecret(phrase)
            let again = try devices.account(present)
            #expect(await errorName { try await again.syncNow() } == "KeyNeeded")
            try await again.unlock(phrase)
            let values = try await devices.converge()
            #expect(values.count == 4 && values["away"] == "kept" && values["later"] == "kept, too")
            present.kill()
        }
    }

    @Test(.enabled(if: program != nil, "only script/full builds the program from before"), arguments: Remote.installed)
    func `the former program stops in the middle of a move, and touches nothing`(in remote: Remote) async throws {
        try await withDevices(in: remote) { devices, contents in
            let (laptop, phone) = (try devices.account(devices.laptop), try devices.account(devices.phone))
            try await devices.join()
            try await devices.store(devices.phone).set("shopping-list", "seventeen turnips")
            _ = try await devices.converge()
            try await phone.setPaused(true)
            try await devices.store(devices.phone).set("away", "kept")
            let move = Task { @BusActor in try await laptop.encrypt() }
            // The first thing that other devices can see is the sealed marker, next to the plain one.
            try await eventually("the move has begun") {
                try contents().contains { $0.contains("/blob/a/") }
                    || contents().count { $0.hasPrefix("a/") && !$0.hasPrefix("a/.") } > 1
            }
            devices.laptop.kill()
            _ = try? await move.value
            let before = try contents()
            // Restarts the phone, because a running service writes unencrypted until it next reads the markers.
            try await devices.phone.restart()
            try await devices.account(devices.phone).setPaused(false)
            for _ in 0..<2 {
                #expect(await errorName { try await devices.account(devices.phone).syncNow() } == "RemoteFormatTooNew")
                try await devices.phone.restart()
            }
            #expect(try contents() == before)
            try await devices.laptop.restart()
            let again = try devices.account(devices.laptop)
            var phrase = ""
            try await eventually("the move is over") {
                try? await again.encrypt()
                phrase = (try? await again.recoveryPhrase(flags: 1)) ?? ""
                return !phrase.isEmpty
            }
            devices.laptop.keepSecret(phrase)
            #expect(try await devices.store(devices.laptop).everything() == ["shopping-list": "seventeen turnips"])
        }
    }
}
