// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import Blobs
internal import HTTPClient
internal import Replication

/// Tests a server: first whether it can be reached and accepts the credentials, then what every storage has to do.
struct WebDAVProbe {
    private let storage: WebDAVStorage
    private let environment: Environment
    private var folder: WebDAVFolder { storage.folder }

    init(_ storage: WebDAVStorage, _ environment: Environment) {
        (self.storage, self.environment) = (storage, environment)
    }

    func run() async -> [BackendCheck] {
        let response: HTTPResponse
        do throws(RemoteError) {
            response = try await firstLook()
        } catch {
            return [BackendCheck(step: "connect", failed: error)]
        }
        let checks = [
            BackendCheck(step: "connect", isPassed: true), .clock(response.date, environment), signIn(response),
        ]
        guard checks.allSatisfy(\.isPassed) else { return checks }
        return checks + (await checkFolder(response))
    }

    /// Sends the first request. It ends at once if the check is cancelled, because nothing has to be removed yet.
    private func firstLook() async throws(RemoteError) -> HTTPResponse {
        let result = await withTaskCancellationHandler { () async -> Result<HTTPResponse, RemoteError> in
            do throws(RemoteError) { return .success(try await folder.look()) } catch {
                return .failure(error)
            }
        } onCancel: {
            storage.close()
        }
        return try result.get()
    }

    private func signIn(_ response: HTTPResponse) -> BackendCheck {
        let isRefused = response.status == 401 || response.status == 403
        return isRefused
            ? BackendCheck(step: "sign in", failed: folder.failure(response))
            : BackendCheck(step: "sign in", isPassed: true)
    }

    private func checkFolder(_ response: HTTPResponse) async -> [BackendCheck] {
        switch response.status {
        case 207: break
        case 404, 410: return [await checkAbove()]
        case 405, 501:
            do throws(RemoteError) { _ = try await storage.list("") } catch {
                guard error.isFolderMissing else { return [BackendCheck(step: "folder", failed: error)] }
                if let failed = await checkMakingFolders() { return [failed] }
                return [await checkAbove()]
            }
        default:
            return [BackendCheck(step: "folder", failed: folder.failure(response))]
        }
        let words =
            storage.lister.keepsNames ? "The server lists no folders, so files with the names in them are kept." : ""
        let found = BackendCheck(step: "folder", isPassed: true, detail: words)
        var probe = BlobProbe(of: storage, environment: environment, name: WebDAVFolder.probeName)
        await probe.run()
        let checks = [found] + probe.checks.filter { $0.step != "open" }
        return checks.allSatisfy(\.isPassed) ? checks + [await checkConditions()] : checks
    }

    /// Returns the failed check of a server that doesn't know the request by which folders are made. The topmost folder
    /// is there, so the request makes none.
    private func checkMakingFolders() async -> BackendCheck? {
        var top = folder.address("")
        top.path = "/"
        do throws(RemoteError) {
            let response = try await folder.send(HTTPRequest("MKCOL", top))
            return response.status == 501 ? BackendCheck(step: "folder", failed: folder.failure(response)) : nil
        } catch {
            return BackendCheck(step: "folder", failed: error)
        }
    }

    /// Checks the folder above a missing one, because signing in creates only the last folder of the path.
    private func checkAbove() async -> BackendCheck {
        let isThere: Bool
        do throws(RemoteError) { isThere = try await folder.lookAbove() } catch {
            return BackendCheck(step: "folder", failed: error)
        }
        let (path, condition) = (folder.path, isThere ? "" : ", if the folder above it exists")
        return BackendCheck(
            step: "folder", isPassed: true, detail: "\(path) doesn't exist yet; signing in creates it\(condition).")
    }

    /// Finds out whether the server honours conditions. Nothing depends on it.
    private func checkConditions() async -> BackendCheck {
        let name = WebDAVFolder.probeName + environment.random().hexDigits
        var ignored: [String] = []
        do throws(RemoteError) {
            try await storage.put(name, [1])
            for condition in [("If-None-Match", "*"), ("If-Match", "\"0\"")] {
                if try await folder.write(name, [2], [condition]).status != 412 { ignored.append(condition.0) }
            }
            try await storage.delete(name)
        } catch {
            do { try await storage.delete(name) } catch {}
            return BackendCheck(step: "conditions", failed: error)
        }
        let words = ignored.joined(separator: ", ")
        return BackendCheck(
            step: "conditions", isPassed: true,
            detail: ignored.isEmpty
                ? "" : "The server ignores \(words). That does no harm: the service doesn't rely on it.")
    }
}
