// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzTargets
import Testing

/// The inputs that libFuzzer has found worth keeping. `script/fuzz` looks for more.
struct CorpusTests {
    @Test(arguments: FuzzTarget.allCases)
    func `every file of the corpus is read or refused, and what is read is written again`(target: FuzzTarget) throws {
        let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Corpora/\(target.rawValue)")
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(files.count > 20)
        for file in files {
            let problem = target.problem(with: Array(try Data(contentsOf: file)))
            #expect(problem == nil, "\(file.lastPathComponent)")
        }
    }
}
