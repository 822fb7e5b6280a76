// SPDX-License-Identifier: Apache-2.0

import RemoteAddress
import Testing

struct RemoteAddressTests {
    @Test(arguments: [
        ("folder:///a/b c", "FOLDER:////a//b%20c/"), ("webdavs://A.example/x", "webdavs://a.example/x//"),
        ("webdavs://a.example", "webdavs://a.example/"), ("webdavs://a/%7Ex", "webdavs://a/~x"),
        ("etcd://a,[::1]:2/x", "etcd://A,[::1]:2/x"),
    ])
    func `one remote has several addresses`(first: String, second: String) {
        #expect(RemoteAddress.areSame(first, second) && RemoteAddress.areSame(second, first))
    }

    @Test func `blocks of PEM are counted in any bytes`() {
        let block = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"
        #expect(PEM.blocks(in: Array(String(repeating: block, count: 3).utf8)) == 3)
        #expect(PEM.hasCertificate(Array("\u{1F1E6}\(block)".utf8)))
        for text in ["", "-----BEGIN", "-----BEGIN\u{A0}CERTIFICATE-----"] {
            #expect(PEM.blocks(in: Array(text.utf8)) == 0 && !PEM.hasCertificate(Array(text.utf8)))
        }
    }

    @Test(arguments: [
        ("folder:///a/b", "folder:///a/B"), ("folder:///a/b", "folder:///a%2Fb"), ("webdavs://a/x", "webdav://a/x"),
        ("webdavs://a//x", "webdavs://a/x"), ("webdavs://a/x", "webdavs://b/x"), ("webdavs://Ada@a", "webdavs://ada@a"),
        ("webdavs://a:1/x", "webdavs://a:2/x"), ("webdavs://a/x?", "webdavs://a/x"),
        ("folder:///a/../b", "folder:///b"), ("", "folder:///"),
    ])
    func `different addresses may be of different remotes`(first: String, second: String) {
        #expect(!RemoteAddress.areSame(first, second))
    }

    @Test(arguments: [
        "webdav://dav.example/x", "WebDAV://192.0.2.1:80/x", "webdav://0.0.0.0/x", "webdav://127.evil.example/x",
        "webdav://localhost.example", "webdav://[::1:2]/x", "etcd://localhost,db.example:2379/x", "etcd://db/x",
    ])
    func `what goes over a network without encryption is warned of`(url: String) {
        let scheme = url.prefix { $0 != ":" }.lowercased()
        #expect(RemoteAddress.warning(of: url)?.contains("\(scheme)s://") == true)
    }

    @Test(arguments: [
        "webdavs://dav.example/x", "etcds://db.example/x", "folder:///dav.example", "webdav://localhost/x",
        "webdav://LOCALHOST:8080/x", "webdav://a.localhost/x", "webdav://127.0.0.1:80/x", "webdav://[::1]:80/x",
        "etcd://127.0.0.1:1,[::1]:2,localhost/x", "webdav", "",
    ])
    func `what is encrypted, or stays on the machine, is not`(url: String) {
        #expect(RemoteAddress.warning(of: url) == nil)
    }

    @Test(arguments: [
        ("webdavs://a.example:8443/x", "a.example:8443"), ("webdavs://ada:pw@a.example/x", "ada:pw@a.example"),
        ("webdavs:ada:pw@a.example/x", "ada:pw@a.example"), ("etcd://a:1,[::1]:2/x", "a:1,[::1]:2"),
        ("webdavs://a.example?x@y", "a.example"), ("webdavs://a#x@y", "a"), ("folder:///home/x@y", ""),
        ("folder:/home", ""), ("webdavs", ""), ("", ""), (":", ""), ("webdavs://", ""),
    ])
    func `hosts stand between the scheme and the path`(url: String, authority: String) {
        #expect(RemoteAddress.authority(of: url) == authority)
    }

    @Test func `a file has a certificate by its labels`() {
        for label in ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"] {
            let text = "of ca.example\n-----BEGIN \(label)-----\nAA==\n-----END \(label)-----\n"
            #expect(PEM.hasCertificate(Array(text.utf8)))
        }
        for text in ["", "root:x:0:0", "-----BEGIN CERTIFICATE-----\nAA==", "-----BEGIN PRIVATE KEY-----"] {
            #expect(!PEM.hasCertificate(Array(text.utf8)), "\(text)")
        }
    }
}
