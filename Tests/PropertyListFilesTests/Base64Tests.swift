// SPDX-License-Identifier: Apache-2.0

import PropertyListFiles
import Testing

@Suite struct Base64Tests {
    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ]) func `bytes and their text are made of each other`(_ text: String, _ encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
        #expect(Base64.decode(encoded.map { "\($0)\n " }.joined()) == Array(text.utf8))
    }

    @Test(arguments: [
        "A", "AA", "AA=", "A===", "====", "AA=A", "AAAA====", "=AAA", "AA==AA==", "!!!!", "AAA\u{0}", "AAé",
    ]) func `what is no Base64 is nothing, though other decoders make something of it`(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
