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

    /// - Parameter bus: `system`, `session` or an address.
    package init(bus: String) {
        let link = Link()
        self.link = link
        service = PanelService(bus: bus) { link.panel?.look() }
        link.panel = self
    }

    /// Whether the window can be seen. If so, it reads every half minute, because some properties send no signals.
    package var isVisible = false {
        didSet {
            guard isVisible != oldValue else { return }
            timer = isVisible ? Timer(every: 30) { [weak self] in self?.look() } : nil
            if isVisible { look() }
        }
    }

    /// Reads the service's state; once more afterwards if this is called meanwhile.
    package func look() {
        isOutdated = true
        if isLooking { return }
        isLooking = true
        MainThread.task { [weak self] in
            while let self, isOutdated {
                isOutdated = false
                do {
                    content = .state(try await service.state())
                } catch {
                    content = .unavailable(ErrorSentence.text(error))
                }
            }
            self?.isLooking = false
        }
    }

    private final class Link: @unchecked Sendable {
        // The panel is read and written on the main actor alone.
        weak var panel: Panel?
    }
}
