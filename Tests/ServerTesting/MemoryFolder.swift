// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A folder of a WebDAV server, in memory. It can fall silent.
public final class MemoryFolder: Sendable {
    private let state = Mutex((files: [String: [UInt8]](), isSilent: false))

    /// Whether it leaves requests unanswered.
    public var isSilent: Bool {
        get { state.withLock(\.isSilent) }
        set { state.withLock { $0.isSilent = newValue } }
    }

    /// Makes a folder without files.
    public init() {}

    /// Adds or replaces a file.
    public func put(_ path: String, _ content: [UInt8]) { state.withLock { $0.files[path] = content } }

    /// Removes all files.
    public func empty() { state.withLock { $0.files = [:] } }

    /// Answers a request.
    public func answer(to request: ServerRequest) -> ServerAnswer {
        state.withLock { state in
            if state.isSilent { return .nothing }
            switch request.method {
            case "PUT":
                state.files[request.path] = request.body
                return ServerAnswer(201)
            case "GET":
                guard let body = state.files[request.path] else { return ServerAnswer(404) }
                return ServerAnswer(
                    bytes: Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
            case "DELETE":
                state.files[request.path] = nil
                return ServerAnswer(204)
            case "PROPFIND": return listing(state.files.keys.filter { $0.hasPrefix(request.path) })
            default: return ServerAnswer(201)
            }
        }
    }

    private func listing(_ paths: [String]) -> ServerAnswer {
        let members = paths.map { "<D:response><D:href>\($0)</D:href></D:response>" }.joined()
        return ServerAnswer(207, [:], "<D:multistatus xmlns:D=\"DAV:\">\(members)</D:multistatus>")
    }
}
