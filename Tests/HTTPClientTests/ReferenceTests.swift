// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Testing

@testable import HTTPClient

/// Resolving the reference in a `Location`.
@BusActor
@Suite struct ReferenceTests {
    private func resolve(_ reference: String) throws -> String? {
        let base = try #require(HTTPAddress("http://a/b/c/d;p?q"))
        return base.resolving(reference, by: try Curl.load())?.description
    }

    /// The examples of RFC 3986, 5.4.1 and 5.4.2, without the fragments, which are never sent.
    @Test(arguments: [
        ("g", "g"), ("./g", "g"), ("g/", "g/"), ("?y", "d;p?y"), ("g?y", "g?y"), ("#s", "d;p?q"), ("g#s", "g"),
        ("g?y#s", "g?y"), (";x", ";x"), ("g;x", "g;x"), ("g;x?y#s", "g;x?y"), ("", "d;p?q"), (".", ""), ("./", ""),
        ("g.", "g."), (".g", ".g"), ("g..", "g.."), ("..g", "..g"), ("./g/.", "g/"), ("g/./h", "g/h"), ("g/../h", "h"),
        ("g;x=1/./y", "g;x=1/y"), ("g;x=1/../y", "y"), ("g?y/./x", "g?y/./x"), ("g?y/../x", "g?y/../x"),
        ("g#s/./x", "g"), ("g#s/../x", "g"),
    ])
    func `a relative reference leads where the standard says`(_ reference: String, _ path: String) throws {
        #expect(try resolve(reference) == "http://a/b/c/" + path)
    }

    @Test(arguments: [
        ("/g", "/g"), ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"), ("../..", "/"), ("../../", "/"),
        ("../../g", "/g"), ("../../../g", "/g"), ("../../../../g", "/g"), ("/./g", "/g"), ("/../g", "/g"),
        ("./../g", "/b/g"),
    ])
    func `folders above are found`(_ reference: String, _ path: String) throws {
        #expect(try resolve(reference) == "http://a" + path)
    }

    @Test(arguments: [("//g", "http://g/"), ("https://g:8443/x", "https://g:8443/x"), ("HTTP://G/", "http://g/")])
    func `another server is one`(_ reference: String, _ address: String) throws {
        #expect(try resolve(reference) == address)
    }

    @Test(arguments: [
        "g:h", "http:g", "ftp://a/", "file:///etc/passwd", "javascript:x", "http://u@b/", "http://b:99999/",
        "http://b/\u{1}",
        "g\u{0}", "//", "http://b/\u{FC}",
    ])
    func `what is no address of HTTP is refused`(_ reference: String) throws {
        #expect(try resolve(reference) == nil)
    }
}
