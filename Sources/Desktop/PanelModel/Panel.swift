// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import UbiquitousStore

/// What the window shows. Follows the service.
@MainActor
package final class Panel {
    /// What the window shows.
    package enum Content {
        /// Nothing has been read yet.
        case opening
        case state(PanelState)
        /// The service is unavailable, with the reason.
        case unavailable(String)
    }

    /// The contents that were read last.
    package private(set) var content = Content.opening { didSet { onChange?() } }
    /// Called after each read.
    package var onChange: (@MainActor () -> Void)?
    /// The panel's connection to the service.
    package let service: PanelService

    private let link: Link
    private var timer: Timer?
    private var isLooking = false
    private var isOutdated = false
    private var areAppsOutdated = true

    /// - Parameter bus: `system`, `session` or an address.
    package init(bus: String) {
        let link = Link()
        self.link = link
        service = PanelService(bus: bus) { link.panel?.look() }
        link.panel = self
    }

    /// What of the window can be seen.
    package enum Seen { case nothing, account, apps }

    /// Returns what can be seen. Every half minute this is read, because some properties send no signals; the apps only
    /// if they can be seen, because each of them is a call.
    package var seen: @MainActor () -> Seen = { .apps }

    /// Whether the window is open.
    package var isVisible = false {
        didSet {
            guard isVisible != oldValue else { return }
            timer = isVisible ? Timer(every: 30) { [weak self] in self?.lookAgain() } : nil
            if isVisible { look() }
        }
    }

    private func lookAgain() {
        let seen = seen()
        if seen != .nothing { look(atApps: seen == .apps) }
    }

    /// Reads the service's state; once more afterwards if this is called meanwhile.
    package func look(atApps isWhole: Bool = true) {
        isOutdated = true
        areAppsOutdated = areAppsOutdated || isWhole
        if isLooking { return }
        isLooking = true
        MainThread.task { [weak self] in
            while let self, isOutdated {
                isOutdated = false
                let apps = areAppsOutdated ? nil : apps
                areAppsOutdated = false
                do {
                    content = .state(try await service.state(knowing: apps))
                } catch {
                    content = .unavailable(ErrorSentence.text(error))
                }
            }
            self?.isLooking = false
        }
    }

    private var apps: [AppUsage]? {
        if case .state(let state) = content { state.apps } else { nil }
    }

    private final class Link: @unchecked Sendable {
        // The panel is read and written on the main actor alone.
        weak var panel: Panel?
    }
}
