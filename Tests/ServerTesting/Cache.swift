// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The directory into which script/bootstrap puts what is not in Debian.
enum Cache {
    static var path: String {
        let environment = ProcessInfo.processInfo.environment
        let home = FileManager.default.homeDirectoryForCurrentUser.path
        return (environment["XDG_CACHE_HOME"] ?? home + "/.cache") + "/ubiquitous-store"
    }
}
