// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import UbiquitousStore

/// What the window shows, and how it follows the service.
@MainActor
package final class Panel {
    /// What there is to show.
    package enum Content {
        /// Nothing yet.
        case opening
        case state(PanelState)
        /// There is no service, with the reason.
        case unavailable(String)
    }

    /// The last look at the service.
    package private(set) var content = Content.opening { didSet { onChange?() } }
    /// Called after each look.
    package var onChange: (@MainActor () -> Void)?
    /// The way to the service.
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

    /// Whether the window can be seen: it is looked every half minute then, as times and what is pending send no signal.
    package var isVisible = false {
        didSet {
            guard isVisible != oldValue else { return }
            timer = isVisible ? Timer(every: 30) { [weak self] in self?.look() } : nil
            if isVisible { look() }
        }
    }

    /// Looks at the service; once more afterwards if it is asked for while it looks.
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
        // Read and written on the main actor alone.
        weak var panel: Panel?
    }
}
