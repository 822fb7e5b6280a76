// SPDX-License-Identifier: Apache-2.0

// Built as usual, it reads the named files, and prints what does not hold of them. Built with FUZZING and libFuzzer,
// which then has the main function, it reads generated input: script/fuzz.

internal import Foundation
internal import FuzzTargets

#if FUZZING
    /// The target. It is not an argument, because libFuzzer starts itself again with arguments of its own.
    private let target = ProcessInfo.processInfo.environment["FUZZ_TARGET"].flatMap(FuzzTarget.init)

    @c(LLVMFuzzerTestOneInput)
    func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
        guard let target else { exit(64) }
        let problem = target.problem(with: Array(UnsafeBufferPointer(start: data, count: size)))
        // A trap tells libFuzzer of the problem.
        precondition(problem == nil, problem ?? "")
        return 0
    }
#else
    @main
    enum Fuzz {
        static func main() throws {
            let arguments = CommandLine.arguments.dropFirst()
            guard let target = arguments.first.flatMap(FuzzTarget.init) else {
                throw Misuse(description: "fuzz \(FuzzTarget.allCases.map(\.rawValue).joined(separator: "|")) FILE…")
            }
            for file in arguments.dropFirst() {
                let problem = target.problem(with: Array(try Data(contentsOf: URL(filePath: file))))
                print("\(file): \(problem ?? "well")")
            }
        }
    }

    private struct Misuse: Error, CustomStringConvertible {
        let description: String
    }
#endif
