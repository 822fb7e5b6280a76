// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// The apps page.
@MainActor
final class AppsView {
    weak var owner: PanelWindow?
    private let group: PreferencesGroup
    private let search: PreferencesGroup
    private let name: SearchEntry
    private var rows: RowList<AppRow>?
    /// What was shown last. Finding the apps' names reads a file for each.
    private var shown: (apps: [AppUsage], page: AppsPage)?

    init(_ interface: Interface) {
        group = interface.widget("apps")
        (search, name) = (interface.widget("app_search"), interface.widget("app_name"))
        rows = RowList(group) { [unowned self] _ in AppRow(self) }
        name.onSearch { [unowned self] in if let shown { show(shown.page) } }
    }

    func show(_ state: PanelState) {
        rows?.areSensitive = true
        show(page(state.apps))
    }

    private func show(_ page: AppsPage) {
        let found = page.rows(matching: name.text)
        search.isVisible = page.isLong || !name.text.isEmpty
        group.explanation =
            if page.rows.isEmpty {
                tr("No app has settings to sync yet. They appear here once an app keeps some.")
            } else if found.isEmpty {
                tr("No app's name contains “%1”.", name.text)
            } else {
                tr("What is switched off stays on this device.")
            }
        rows?.show(found)
    }

    private func page(_ apps: [AppUsage]) -> AppsPage {
        if let shown, shown.apps == apps { return shown.page }
        let page = AppsPage(apps) { identifier in
            DesktopApplication(identifier + ".desktop").map { AppsPage.Application(name: $0.name, icon: $0.icon) }
        }
        shown = (apps, page)
        return page
    }

    /// Shows why the apps can't be changed.
    func showUnavailable(_ reason: String) {
        group.explanation = reason
        rows?.areSensitive = false
    }

    fileprivate func open(_ row: AppsPage.Row) { owner?.openStore(row) }

    fileprivate func setSynchronized(_ row: AppsPage.Row, _ isOn: Bool) {
        owner?.perform { try await $0.setSynchronized(row.id, isOn) }
    }
}

/// An app's row: what its store uses, and whether it is synced.
@MainActor
private final class AppRow: RowView {
    private let row: ActionRow
    private let icon: Image
    private let bar: LevelBar
    private let sync: Switch
    private var model: AppsPage.Row?
    private var isShowing = false
    var widget: Widget { row }

    init(_ owner: AppsView) {
        let interface = Interface(PackageResources.app_row_ui)
        row = interface.widget("row")
        icon = interface.widget("icon")
        bar = interface.widget("bar")
        sync = interface.widget("sync")
        row.onActivate { [unowned self, unowned owner] in if let model { owner.open(model) } }
        sync.onSwitch { [unowned self, unowned owner] in
            if !isShowing, let model { owner.setSynchronized(model, sync.isOn) }
        }
    }

    func show(_ model: AppsPage.Row) {
        isShowing = true
        // Even if nothing has changed: what the user switched may have been refused.
        sync.isOn = model.isSynchronized
        isShowing = false
        if model == self.model { return }
        self.model = model
        (row.title, row.subtitle, bar.share) = (model.title, model.subtitle, model.share)
        sync.setAccessibleName(tr("Sync the settings of “%1”", model.title))
        icon.icon = model.icon ?? "application-x-executable-symbolic"
        let isWarning = model.level != .usual
        if bar.isWarning != isWarning { bar.isWarning = isWarning }
        bar.isVisible = !model.isEmpty
    }
}
