// SPDX-License-Identifier: Apache-2.0

import HTTPClient
import Replication
import SyncEngine
import Testing

@testable import WebDAV

/// Listings as servers write them, and as none should.
@Suite struct MultistatusTests {
    private func members(_ text: String, pieces: Int = .max) throws -> [Multistatus.Member] {
        var multistatus = Multistatus()
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            try piece.withUnsafeBytes { try multistatus.feed($0) }
        }
        try multistatus.finish()
        return multistatus.members
    }

    private func flaw(_ text: String) -> String? {
        do { _ = try members(text) } catch { return (error as? XMLScanner.Flaw)?.clause ?? "\(error)" }
        return nil
    }

    private static let apache = """
        <?xml version="1.0" encoding="utf-8"?>
        <D:multistatus xmlns:D="DAV:" xmlns:ns0="DAV:">
        <D:response xmlns:lp1="DAV:" xmlns:lp2="http://apache.org/dav/props/">
        <D:href>/dav/h/</D:href><D:propstat><D:prop>
        <lp1:getetag>"1000-64f"</lp1:getetag><D:resourcetype><D:collection/></D:resourcetype>
        </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
        <D:response><D:href>/dav/h/00000000000000aa</D:href>
        <D:propstat><D:prop><ns0:getetag>W/"7-6&quot;4"</ns0:getetag><D:getcontentlength> 7 </D:getcontentlength>
        <D:getlastmodified>Sat, 21 Nov 2026 12:00:00 GMT</D:getlastmodified></D:prop>
        <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
        </D:multistatus>

        """

    @Test(arguments: [1, 2, 3, 7, 64, .max]) func `a listing is read however it is cut into pieces`(_ pieces: Int)
        throws
    {
        let members = try members(Self.apache, pieces: pieces)
        #expect(members.map(\.name) == ["h", "00000000000000aa"])
        #expect(members.map(\.isFolder) == [true, false])
        #expect(members[1].tag == "W/\"7-6\"4\"" && members[1].length == "7")
        #expect(members[1].modified == "Sat, 21 Nov 2026 12:00:00 GMT")
    }

    @Test(arguments: [
        "<d:multistatus xmlns:d='DAV:'>", "<multistatus xmlns=\"DAV:\">",
        "<\u{e9}:multistatus xmlns:\u{e9} = \"DAV:\" >",
        "<!-- c > --><a:multistatus xmlns:b='b' xmlns:a='DAV&#58;'>",
    ]) func `any prefix will do`(start: String) throws {
        let prefix =
            start.contains("<d:") ? "d:" : start.contains("<a:") ? "a:" : start.contains("<\u{e9}:") ? "\u{e9}:" : ""
        let text =
            start
            + "<\(prefix)response><\(prefix)href><![CDATA[/x/]]>a%20b</\(prefix)href></\(prefix)response></\(prefix)multistatus>"
        #expect(try members(text).map(\.name) == ["a b"])
    }

    @Test func `an address may be whole or a path, encoded or not, and another server's`() throws {
        for (reference, name) in [
            ("http://inside:8080/other/h/aa", "aa"), ("/dav/h/%61a", "aa"), ("aa", "aa"), ("/dav/h/aa?x#y", "aa"),
            ("/dav/h/\u{e9}", "\u{e9}"),
        ] {
            let text =
                "<m:multistatus xmlns:m='DAV:'><m:response><m:href> \(reference)\n</m:href></m:response></m:multistatus>"
            #expect(try members(text).map(\.name) == [name])
        }
    }

    @Test func `what is named and not there is not listed, and neither is what has no name`() throws {
        let text = """
            <multistatus xmlns="DAV:"><response><href>/h/aa</href><status>HTTP/1.1 404 Not Found</status></response>
            <response><href>/</href></response><response><href>/h/%zz</href></response><response/>
            <response><href>/h/00000000000000aa%2F..%2Fbb</href></response>
            <x:response xmlns:x="other"><href>/h/bb</href></x:response></multistatus>
            """
        #expect(try members(text).isEmpty)
    }

    @Test func `what a server says that it has not is not what it has`() throws {
        let text = """
            <D:multistatus xmlns:D="DAV:"><D:response><D:href>/h/aa</D:href>
            <D:propstat><D:prop><D:getetag>"none"</D:getetag><D:getlastmodified/><D:resourcetype><D:collection/>
            </D:resourcetype></D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>
            <D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength><D:getlastmodified> </D:getlastmodified></D:prop>
            <D:status>HTTP/1.1 200 OK</D:status></D:propstat>
            <D:propstat><D:status>HTTP/1.1 403 Forbidden</D:status><D:prop><D:getcontentlength/></D:prop></D:propstat>
            </D:response></D:multistatus>
            """
        #expect(try members(text) == [Multistatus.Member(name: "aa", length: "7")])
    }

    @Test func `what is no listing is refused, and nothing that makes much out of little`() {
        for text in [
            "", "hello", "<a>", "<a></b>", "<a/><b/>", "<a b></a>", "<a b=c/>", "<a>&b;</a>", "<a>&#xD800;</a>",
            "<html><body><br></body></html>", "<!DOCTYPE html><html/>", "<a/>more",
            "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;&b;\">]><a>&c;</a>",
            String(repeating: "<a>", count: 1000), "<a b=\"" + String(repeating: "x", count: 1 << 20),
            "<a " + (0..<100).map { "xmlns:p\($0)='x'" }.joined(separator: " ") + "/>",
            // Each of the elements would be copied with this name.
            "<a xmlns='\(String(repeating: "x", count: 60_000))'><b/><b/></a>",
        ] { #expect(flaw(text) != nil, "\(text.prefix(60))") }
    }

    /// expat keeps each name that it has seen.
    @Test(arguments: ["element", "attribute", "prefix"])
    func `a listing with ever new names is refused`(kind: String) {
        let names = (0..<60_000).map { "name\($0)" }
        let elements =
            switch kind {
            case "element": names.map { "<\($0)/>" }
            case "attribute": names.map { "<b \($0)=''/>" }
            default: names.map { "<b xmlns:\($0)='x'/>" }
            }
        #expect(flaw("<a>" + elements.joined() + "</a>") == "it has too many different names")
        let repeated = (0..<10).map { _ in elements.prefix(1000).joined() }
        #expect(flaw("<a>" + repeated.joined() + "</a>") == nil)
    }

    @Test func `names of namespaces may be as long as those in use`() throws {
        let name = "http://example.org/" + String(repeating: "n", count: 200)
        let text = Self.apache.replacing("http://apache.org/dav/props/", with: name)
        #expect(try members(text).map(\.name) == ["h", "00000000000000aa"])
    }

    @Test func `a listing without an end is not kept`() throws {
        var multistatus = Multistatus { _ in false }
        let start = Array("<multistatus xmlns='DAV:'>".utf8)
        let response = Array("<response><href>/h/aa</href></response>".utf8)
        try start.withUnsafeBytes { try multistatus.feed($0) }
        for _ in 0..<10_000 { try response.withUnsafeBytes { try multistatus.feed($0) } }
        #expect(multistatus.members.isEmpty)
    }

    @Test(arguments: [(true, 1 << 20, 50_000), (false, 50_000, 1 << 20)])
    func `a listing that would fill the memory is refused, and so is one that goes on and on`(
        keeps: Bool, mostBytes: Int, mostKeptBytes: Int
    ) throws {
        var multistatus = Multistatus(keeping: { _ in keeps }, mostBytes: mostBytes, mostKeptBytes: mostKeptBytes)
        let properties = "<propstat><prop><getetag>\(String(repeating: "x", count: 8000))</getetag></prop></propstat>"
        let response = Array("<response><href>/h/aa</href>\(properties)</response>".utf8)
        try Array("<multistatus xmlns='DAV:'>".utf8).withUnsafeBytes { try multistatus.feed($0) }
        for _ in 0..<6 { try response.withUnsafeBytes { try multistatus.feed($0) } }
        #expect(throws: XMLScanner.Flaw.self) { try response.withUnsafeBytes { try multistatus.feed($0) } }
    }

    // MARK: Addresses

    @Test func `an address of a folder on a server is read, or refused with a reason`() throws {
        for (text, address) in [
            (
                "webdavs://Cloud.Example.org/remote.php/dav/files/ada/My Sync/",
                "https://cloud.example.org/remote.php/dav/files/ada/My%20Sync"
            ),
            ("WEBDAV://[::1]:8080", "http://[::1]:8080/"),
            ("webdavs://h//a///b%2F%c3%a9\u{e9}", "https://h/a/b%2F%c3%a9%C3%A9"),
        ] { #expect(try WebDAVURL(text).address.description == address) }
        for text in [
            "https://h/", "webdavs:/h", "webdavs://", "webdavs:///path", "webdavs://ada:pw@h/", "webdavs://ada@h/",
            "webdavs://h/../x", "webdavs://h/a/%2e%2e/b", "webdavs://h/?q", "webdavs://h/#f", "webdavs://h/%zz",
            "webdavs://h/%00", "webdavs://h:0/", "webdavs://h:70000/", "webdavs://h x/",
            "webdavs://h/" + String(repeating: "a", count: 3000),
        ] { #expect(throws: RemoteError.self, "\(text)") { try WebDAVURL(text) } }
    }

    @Test func `a person is warned where everybody can listen`() throws {
        #expect(try WebDAVURL("webdav://nas.example/x").warning != nil)
        for url in ["webdavs://nas.example/x", "webdav://localhost/x", "webdav://127.0.0.1:81/x"] {
            #expect(try WebDAVURL(url).warning == nil)
        }
    }
}
