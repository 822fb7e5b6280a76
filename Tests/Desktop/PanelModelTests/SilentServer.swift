// SPDX-License-Identifier: Apache-2.0

import ServerTesting

/// A server that accepts requests and never answers.
struct SilentServer {
    private let server: ScriptedServer

    init() throws { server = try ScriptedServer { _ in .nothing } }

    var port: UInt16 { server.port }
    var isAsked: Bool { !server.requests.isEmpty }
}
