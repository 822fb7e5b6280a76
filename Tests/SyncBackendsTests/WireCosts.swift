// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import PropertyList
import ServerTesting

extension [FaultProxy.Exchange] {
    var bytesOut: Int { reduce(0) { $0 + $1.request.bytes.count } }
    var bytesIn: Int { reduce(0) { $0 + $1.answerBytes } }

    var summary: String {
        let lines = map { "\($0.request.method) \($0.request.path)" }
        return "\(count) requests, \(bytesOut) bytes out, \(bytesIn) in: \(lines)"
    }
}

extension BackendDevice {
    /// Twenty stores with ten settings each.
    func fillSmallStores() {
        for store in 0..<20 {
            for key in 0..<10 { set("org.example.app-\(store)", "setting.\(key)", .string(Text("value \(key)"))) }
        }
    }
}
