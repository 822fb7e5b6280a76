// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import StoreEngine
internal import SyncEngine

/// Tries a server out: first whether it can be reached and lets one in, then what every storage has to do.
struct WebDAVTrial {
    private let storage: WebDAVStorage
    private let environment: Environment

    init(_ storage: WebDAVStorage, _ environment: Environment) {
        (self.storage, self.environment) = (storage, environment)
    }

    func run() async -> [BackendCheck] {
        let response: HTTPResponse
        do throws(RemoteError) {
            response = try await storage.propfind("", depth: "0", Multistatus.Reader(keeping: { _ in true }))
        } catch {
            return [BackendCheck(step: "connect", isPassed: false, detail: error.message)]
        }
        let checks = [BackendCheck(step: "connect", isPassed: true), clock(response), signIn(response)]
        guard checks.allSatisfy(\.isPassed) else { return checks }
        return checks + (await checkFolder(response))
    }

    /// Nothing depends on the server's clock, but this device's decides which of two values is the later one.
    private func clock(_ response: HTTPResponse) -> BackendCheck {
        guard let date = response.date else {
            return BackendCheck(step: "clock", isPassed: true, detail: "The server does not say what time it is.")
        }
        let offset = date - Int(environment.time() / 1_000_000)
        var detail = ""
        if abs(offset) > 2 {
            detail = "The server's clock is \(abs(offset)) s \(offset > 0 ? "ahead of" : "behind") this device's."
            if abs(offset) > 60 {
                detail += " If this device's is wrong, its values win over later ones of other devices, or lose."
            }
        }
        return BackendCheck(step: "clock", isPassed: true, detail: detail)
    }

    private func signIn(_ response: HTTPResponse) -> BackendCheck {
        let isRefused = response.status == 401 || response.status == 403
        return BackendCheck(
            step: "sign in", isPassed: !isRefused, detail: isRefused ? storage.failure(response).message : "")
    }

    private func checkFolder(_ response: HTTPResponse) async -> [BackendCheck] {
        switch response.status {
        case 207: break
        case 404, 410:
            return [
                BackendCheck(
                    step: "folder", isPassed: true,
                    detail: "\(storage.url.address.path) is not there yet; signing in makes it, if the folder above it "
                        + "is there.")
            ]
        case 405, 501:
            do throws(RemoteError) { _ = try await storage.list("") } catch {
                return [BackendCheck(step: "folder", isPassed: false, detail: error.message)]
            }
        default:
            return [BackendCheck(step: "folder", isPassed: false, detail: storage.failure(response).message)]
        }
        var trial = BlobTrial(of: storage, environment: environment, name: WebDAVStorage.trialName)
        await trial.run()
        return [BackendCheck(step: "folder", isPassed: true)] + trial.checks.filter { $0.step != "open" }
    }
}
