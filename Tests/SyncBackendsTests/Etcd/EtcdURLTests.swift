// SPDX-License-Identifier: Apache-2.0

import HTTPClient
import Replication
import SyncEngine
import Testing

@testable import Etcd

@Suite struct EtcdURLTests {
    @Test(arguments: [
        ("etcd://one/settings", ["http://one:2379/"], "settings"),
        ("etcds://one,two:2380,[::1]:99/a/b", ["https://one:2379/", "https://two:2380/", "https://[::1]:99/"], "a/b"),
        ("ETCDS://One.Example,one.example/a/", ["https://one.example:2379/"], "a"),
        ("etcd://h//a%2Fb//", ["http://h:2379/"], "/a/b"),
        ("etcd://h/%C3%A9%25", ["http://h:2379/"], "é%"),
    ]) func `an address names members and a prefix`(_ url: String, _ members: [String], _ prefix: String) throws {
        let read = try EtcdURL(url)
        #expect(read.members.map(\.description) == members)
        #expect(read.place == prefix)
    }

    @Test(arguments: [
        ("etcd:/h/a", "two slashes"), ("http://h/a", "etcds://"), ("etcd://h", "where in the cluster"),
        ("etcd://h/", "where in the cluster"), ("etcd://h//", "where in the cluster"), ("etcd:///a", "HOST"),
        ("etcd://h,/a", "without spaces"), ("etcd://h, g/a", "without spaces"), ("etcd://h:0/a", "HOST:PORT"),
        ("etcd://h:99999/a", "HOST:PORT"), ("etcd://::1/a", "brackets"), ("etcd://ada:s3cret@h/a", "options"),
        ("etcd://h/a?x", "%3F"), ("etcd://h/a#x", "%3F"), ("etcd://h/%4", "two hexadecimal digits"),
        ("etcd://h/a%00", "control"),
        ("etcd://h/" + String(repeating: "a", count: 513), "512"),
        ("etcd://" + (0..<17).map { "h\($0)" }.joined(separator: ",") + "/a", "16 members"),
    ]) func `what is mistyped is told`(_ url: String, _ advice: String) throws {
        let error = try #require(throws: RemoteError.self) { _ = try EtcdURL(url) }
        #expect(error.code == .unsupported && error.message.contains(advice), "\(error)")
        #expect(!error.message.contains("s3cret"))
    }

    @Test func `a connection that everybody can read is warned of, unless nobody is on the way`() throws {
        #expect(try EtcdURL("etcd://127.0.0.1,h/a").warning != nil)
        #expect(try EtcdURL("etcd://127.0.0.1,localhost/a").warning == nil)
        #expect(try EtcdURL("etcds://h/a").warning == nil)
    }
}
