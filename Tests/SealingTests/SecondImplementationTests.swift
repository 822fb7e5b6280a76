// SPDX-License-Identifier: Apache-2.0

import Foundation
import SeededRandom
import Testing

@testable import Sealing

/// The Python program written from docs/remote-format.md alone: each implementation reads the other's output.
@Suite(.enabled(if: SecondImplementation.isThere, "python3-cryptography is not installed: script/bootstrap"))
struct SecondImplementationTests {
    /// A request, and the expected answer.
    private typealias Exchange = (request: [String: Any], answer: [String: Any])

    private func expect(_ exchanges: [Exchange]) throws {
        let answers = try SecondImplementation.answers(to: exchanges.map(\.request))
        try #require(answers.count == exchanges.count)
        for (exchange, answer) in zip(exchanges, answers) {
            #expect(
                NSDictionary(dictionary: answer) == NSDictionary(dictionary: exchange.answer), "\(exchange.request)")
        }
    }

    private static func names(_ key: AccountKey) -> [String: Any] {
        ["secret": hexadecimal(key.secretData), "identifier": "\(key.identifier)"]
    }

    private static func request(_ what: String, _ key: AccountKey, _ more: [String: Any] = [:]) -> [String: Any] {
        names(key).merging(more) { $1 }.merging(["do": what]) { $1 }
    }

    /// Words as people write them.
    private static func written(_ words: [Substring]) -> [String] {
        [
            words.joined(separator: " ").uppercased(), words.joined(separator: ", "),
            words.joined(separator: "-") + ".", "«" + words.joined(separator: "_") + "»",
            words.enumerated().map { "\($0 + 1). \($1)\r\n" }.joined(),
        ]
    }

    @Test func `both make the same phrases of keys and the same keys of phrases`() throws {
        var random = SplitMix(seed: 11)
        try expect(
            (0..<200).flatMap { _ in
                let key = random.key()
                let phrase = RecoveryPhrase(of: key).words.joined(separator: " ")
                let data = Array("key \(random.next())".utf8)
                let hash = String(key.blobs.bucketHash(of: data) | 1 << 16, radix: 16).dropFirst()
                var cases = [
                    (Self.request("phrase", key), ["phrase": phrase]),
                    (Self.request("hash", key, ["key": hexadecimal(data)]), ["hash": String(hash)]),
                ]
                for text in Self.written(phrase.split(separator: " ")) {
                    #expect((try? RecoveryPhrase(reading: text))?.words.joined(separator: " ") == phrase, "\(text)")
                    cases.append((["do": "secret", "phrase": text], ["secret": hexadecimal(key.secretData)]))
                }
                return cases
            })
    }

    @Test func `both refuse the same words`() throws {
        let words = RecoveryPhrase(of: .documented).words
        func changed(_ place: Int, _ word: String) -> String {
            var words = words
            words[place - 1] = word
            return words.joined(separator: " ")
        }
        let refused = [
            (words.dropLast().joined(separator: " "), "11 words"), (changed(3, "qxlimt"), "word 3"),
            (changed(12, "ab"), "word 12"), (changed(1, "zoo"), "checksum"), (changed(2, "amöunt"), "word 2"),
        ]
        try expect(refused.map { (["do": "secret", "phrase": $0.0], ["refused": $0.1]) })
        for (phrase, _) in refused {
            #expect(throws: RecoveryPhraseError.self) { try RecoveryPhrase(reading: phrase) }
        }
    }

    @Test func `both write the same segments and heads, and each opens the other's`() throws {
        var random = SplitMix(seed: 12)
        try expect(
            [0, 1, 100, 127, 128, 233, 234, 255, 256, 257, 1000, 4096, 16_383, 16_384, 61_440, 300_000].flatMap {
                length in
                let (key, content, origin) = (random.key(), random.bytes(length), random.next() | 1 << 63)
                let (sequence, bits) = (random.next() >> 1, (random.next() | 1 << 63, random.next() | 1 << 63))
                let (segment, name) = SealedBlob.seal(segment: content, key.blobs)
                let first = SealedBlob.seal(
                    head: content, origin: origin, sequence: sequence, random: bits, key.blobs)
                let former = random.next() % 2 == 0 ? first.count : 0
                let head = SealedBlob.seal(
                    head: content, origin: origin, sequence: sequence, random: bits, unlikeLength: former, key.blobs)
                let outside = String(origin, radix: 16)
                return [
                    (
                        Self.request("seal segment", key, ["content": hexadecimal(content)]),
                        ["bytes": hexadecimal(segment), "name": hexadecimal(name)]
                    ),
                    (
                        Self.request("open segment", key, ["bytes": hexadecimal(segment)]),
                        ["content": hexadecimal(content), "origin": "", "name": hexadecimal(name)]
                    ),
                    (
                        Self.request(
                            "seal head", key,
                            [
                                "content": hexadecimal(content), "origin": outside, "sequence": sequence,
                                "former": former,
                                "random": String(bits.0, radix: 16) + String(bits.1, radix: 16),
                            ]), ["bytes": hexadecimal(head)]
                    ),
                    (
                        Self.request("open head", key, ["bytes": hexadecimal(head)]),
                        ["content": hexadecimal(content), "origin": outside, "name": ""]
                    ),
                ]
            })
    }

    @Test func `both write the same markers and notes, and each reads the other's`() throws {
        var random = SplitMix(seed: 13)
        try expect(
            (0..<57).flatMap { count -> [Exchange] in
                let (key, former, time) = (random.key(), random.key(), random.next() >> 1)
                let kind: KeyLink.Kind = count % 2 == 0 ? .replaced : .joined
                let link = KeyLink(from: former, to: key.identifier, kind)
                let links = (0..<count).map {
                    $0 == 0 ? link : KeyLink(from: random.key(), to: former.identifier, kind)
                }
                let digits = links.map { hexadecimal($0.note()[6..<71]) }
                let said = hexadecimal(link.note()[6..<71])
                let name = FormerName(former.identifier, of: key)
                let formerName = hexadecimal(name.note()[6..<71])
                let marker = SealedMarker(of: key, time: time, links: links)
                return [
                    (
                        Self.request("link", former, ["successor": "\(key.identifier)", "kind": Int(kind.rawValue)]),
                        ["link": said]
                    ),
                    (Self.request("proven", former, ["link": said]), ["proven": true]),
                    (Self.request("proven", key, ["link": said]), ["proven": false]),
                    (
                        Self.request("marker", key, ["time": time, "links": digits]),
                        ["bytes": hexadecimal(marker.bytes)]
                    ),
                    (
                        Self.request("read marker", key, ["bytes": hexadecimal(marker.bytes)]),
                        ["identifier": "\(key.identifier)", "time": time, "links": digits, "genuine": true]
                    ),
                    (["do": "note", "link": said], ["bytes": hexadecimal(link.note()), "name": "a/\(link.noteName)"]),
                    (
                        ["do": "read note", "bytes": hexadecimal(link.note()), "name": "a/\(link.noteName)"],
                        ["link": said]
                    ),
                    (
                        Self.request("link", key, ["successor": "\(former.identifier)", "kind": 3]),
                        ["link": formerName]
                    ),
                    (
                        ["do": "read note", "bytes": hexadecimal(name.note()), "name": "a/\(name.noteName)"],
                        ["link": formerName]
                    ),
                ]
            })
    }

    @Test func `both refuse the document's refused blobs for the same reason`() throws {
        let link = KeyLink(from: .former, to: AccountKey.documented.identifier, .replaced)
        let kinds = ["context": "open segment", "head": "open head", "marker": "read marker", "note": "read note"]
        let words = ["none of ours": "foreign", "in plain": "plain"]
        try expect(
            try table("### Refused sealed blobs").map { row in
                let what = try #require(kinds[row[0]])
                let request = Self.request(
                    what, .documented, ["bytes": hexadecimal(try octets(row[1])), "name": "a/\(link.noteName)"])
                return (request, ["refused": words[row[2]] ?? row[2]])
            })
    }
}

/// The program `Tests/SecondImplementation/sealed.py`.
private enum SecondImplementation {
    private static let python = "/usr/bin/python3"

    static let isThere = (try? run(["-c", "import cryptography"], "")) != nil

    static func answers(to requests: [[String: Any]]) throws -> [[String: Any]] {
        let program = package.appending(path: "Tests/SecondImplementation/sealed.py").path
        let words = package.appending(path: "Sources/RecoveryWordList/english.txt").path
        let input = String(decoding: try JSONSerialization.data(withJSONObject: requests), as: UTF8.self)
        let output = try run([program, words], input)
        return try #require(try JSONSerialization.jsonObject(with: output) as? [[String: Any]])
    }

    private static func run(_ arguments: [String], _ input: String) throws -> Data {
        let directory = FileManager.default.temporaryDirectory.appending(path: "sealed-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        // Uses files, so that neither side waits for a pipe.
        let (inFile, outFile) = (directory.appending(path: "in"), directory.appending(path: "out"))
        try Data(input.utf8).write(to: inFile)
        try Data().write(to: outFile)
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = arguments
        process.environment = ["PYTHONDONTWRITEBYTECODE": "1"]
        process.standardInput = try FileHandle(forReadingFrom: inFile)
        process.standardOutput = try FileHandle(forWritingTo: outFile)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
        return try Data(contentsOf: outFile)
    }

    private struct Failure: Error {
        let status: Int32
    }
}
