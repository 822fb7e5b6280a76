// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Sets and removes values at random, and records each change in a file before it is made.
///
/// A line has a key and the number to which it was set, or "-" for a removal. Only this process writes keys that begin
/// with `name`; all processes write the others. A line "synchronized" says that what is above it was.
func writeJournal(to path: String, name: String, count: Int, seed: UInt64) {
    guard let journal = fopen(path, "w") else { exit(3) }
    var state = seed
    func draw(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
    }
    func note(_ line: String) {
        fputs(line + "\n", journal)
        fflush(journal)
    }
    for number in 0..<count {
        let key = (draw(4) == 0 ? "shared " : name + " ") + "\(draw(40))"
        let removes = draw(6) == 0
        note("\(key)\t\(removes ? "-" : "\(number)")")
        if removes {
            UserDefaults.standard.removeObject(forKey: key)
        } else {
            let filling = Data(repeating: UInt8(draw(256)), count: draw(50) == 0 ? draw(60_000) : draw(200))
            UserDefaults.standard.set(["number": number, "filling": filling], forKey: key)
        }
        if draw(30) == 0, UserDefaults.standard.synchronize() { note("synchronized\t-") }
        if draw(3) == 0 { usleep(UInt32(draw(4000))) }
    }
}
