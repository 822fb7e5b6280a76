// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import SDBus

extension ProcessInfo {
    /// The environment; empty in programs that can't trust it, such as set-user-ID ones.
    package var trustedEnvironment: [String: String] { TrustedEnvironment.isTrusted ? environment : [:] }
}
