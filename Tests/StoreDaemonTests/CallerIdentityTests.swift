// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

@testable import StoreDaemon

struct CallerIdentityTests {
    private let root = "254:0 /"

    private func identity(_ cgroup: String, root other: String? = nil) -> CallerIdentity {
        CallerIdentity.identity(cgroup: cgroup, root: other ?? root, hostRoot: root)
    }

    private func slice(_ unit: String) -> String {
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/\(unit)\n"
    }

    @Test func `a program of the desktop is a host's with its app's name`() {
        for (unit, app) in [
            ("app-org.gnome.Maps-1234.scope", "org.gnome.Maps"),
            ("app-gnome-org.gnome.Maps-1234.scope", "org.gnome.Maps"),
            ("app-org.kde.kate@abc.service", "org.kde.kate"), ("app-kde-org.kde.kate.service", "org.kde.kate"),
            ("app-org.example.with\\x2ddash-7.scope", "org.example.with-dash"),
        ] {
            #expect(identity(slice(unit)) == CallerIdentity(engine: .host, applicationIdentifier: app), "\(unit)")
        }
    }

    @Test(
        arguments: [
            "session-3.scope", "dbus.service", "app-.scope", "app-x.scope", "vte-spawn-1.scope", "", "notapp-a-b.scope",
        ])
    func `another program of the host has no name`(unit: String) {
        #expect(identity(slice(unit)) == CallerIdentity(engine: .host, applicationIdentifier: ""))
    }

    @Test func `a flatpak is known by its scope`() {
        let identity = identity(slice("app-flatpak-org.example.Notes-4242.scope"), root: "0:77 /newroot")
        #expect(identity == CallerIdentity(engine: .flatpak, applicationIdentifier: "org.example.Notes"))
    }

    @Test func `an app id has nothing that can't be sent or shown`() {
        let name = "org.example\u{1B}[31m\u{202E}" + String(repeating: "x", count: 300)
        for unit in ["app-\(name)-7.scope", "app-flatpak-\(name)-7.scope", "app-\(name)@7.service"] {
            let app = identity(slice(unit)).applicationIdentifier
            #expect(app.hasPrefix("org.example\u{FFFD}[31m\u{FFFD}xxx") && app.utf8.count <= 255, "\(app)")
        }
    }

    @Test func `a service that is called like a flatpak's scope is none`() {
        #expect(identity(slice("app-flatpak-org.example.Notes-4242.service")).engine == .host)
    }

    @Test func `another root is an unknown sandbox, whatever the unit says`() {
        #expect(identity(slice("app-org.gnome.Maps-1.scope"), root: "0:50 /") == .unknown)
        #expect(identity(slice("app-org.gnome.Maps-1.scope"), root: "254:0 /var/lib/machines/a") == .unknown)
        #expect(identity("0::/\n", root: "0:50 /") == .unknown)
    }

    @Test func `a snap is unknown although its root may be the host's`() {
        #expect(identity(slice("snap.firefox.firefox-1.scope")) == .unknown)
    }

    @Test func `the older hierarchy of systemd is read where the newer one says nothing`() {
        let cgroup = """
            9:name=systemd:/user.slice/app-org.gnome.Maps-1.scope
            1:cpu:/
            0::/
            """
        #expect(identity(cgroup).applicationIdentifier == "org.gnome.Maps")
    }

    @Test func `the root is what is mounted on it last`() {
        let mounts = """
            21 1 254:0 / / rw - ext4 /dev/vda rw
            22 21 0:21 / /proc rw - proc proc rw
            40 21 0:44 /root / rw - overlay overlay rw
            """
        #expect(CallerIdentity.rootMount(mounts) == "0:44 /root")
        #expect(CallerIdentity.rootMount("22 21 0:21 / /proc rw - proc proc rw") == nil)
        #expect(CallerIdentity.rootMount("") == nil)
        #expect(CallerIdentity.rootMount("1 2 3\n\n / / /") == nil)
    }

    @Test func `however many mounts a process has, only the first are read`() throws {
        let mounts =
            "21 1 254:0 / / rw - ext4 /dev/vda rw\n"
            + String(repeating: "22 21 0:21 / /m rw - a b rw\n", count: 3000)
        let path = "/tmp/mountinfo-\(UInt64.random(in: 1...UInt64.max))"
        try mounts.write(toFile: path, atomically: true, encoding: .utf8)
        defer { unlink(path) }
        let read = try #require(ProcessDirectory.read(path, from: AT_FDCWD, isWhole: false))
        #expect(read.utf8.count <= 16 << 10 && read.hasSuffix("rw"))
        #expect(CallerIdentity.rootMount(read) == "254:0 /")
        #expect(ProcessDirectory.read(path, from: AT_FDCWD, isWhole: true) == nil)
    }

    @Test func `a process that is gone is unknown`() {
        #expect(CallerIdentity.of(pid: nil) == .unknown)
        #expect(CallerIdentity.of(pid: Int32.max) == .unknown)
    }
}
