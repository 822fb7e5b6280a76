// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel

/// The devices page.
@MainActor
final class DevicesView {
    weak var owner: PanelWindow?
    private let group: PreferencesGroup
    private var rows: RowList<DeviceRow>?

    init(_ interface: Interface) {
        group = interface.widget("devices")
        rows = RowList(group) { [unowned self] _ in DeviceRow(self) }
    }

    func show(_ page: DevicesPage) {
        group.explanation =
            page.isSignedIn
            ? tr("These have the same settings.") : tr("Sign in to see your other devices, and to name this one.")
        rows?.areSensitive = true
        rows?.show(page.rows)
        for row in rows?.views ?? [] { row.isChangeable = page.isSignedIn }
    }

    /// Shows why the devices can't be changed.
    func showUnavailable(_ reason: String) {
        group.explanation = reason
        rows?.areSensitive = false
    }

    /// Takes back the name that is being typed.
    ///
    /// - Returns: whether one was.
    func takeBack() -> Bool { rows?.views.contains { $0.takeBack() } ?? false }

    fileprivate func rename(_ device: DevicesPage.Row, to name: String) {
        if let flaw = DevicesPage.flaw(ofName: name) {
            owner?.window.toast(flaw)
            return
        }
        owner?.perform { try await $0.rename(device.id, to: name) }
    }

    fileprivate func forget(_ device: DevicesPage.Row) {
        owner?.ask(
            tr("Forget “%1”?", device.title.quoted),
            tr(
                "The device is removed from this list. Its settings stay, because all devices share them. This doesn't lock the device out: while it has the password, it comes back with its next change, or after a day. If it was lost, change the password as well."
            ),
            [("forget", tr("_Forget"), .destructive)]
        ) { [weak self] answer in
            if answer == "forget" { self?.owner?.perform { try await $0.forget(device.id) } }
        }
    }
}

/// A device's row: its name, and what can be done with it.
@MainActor
private final class DeviceRow: RowView {
    private let row: ExpanderRow
    private let name: EntryRow
    private let forget: ActionRow
    private var model: DevicesPage.Row?
    var widget: Widget { row }

    init(_ owner: DevicesView) {
        let interface = Interface(PackageResources.device_row_ui)
        row = interface.widget("row")
        name = interface.widget("name")
        forget = interface.widget("forget_row")
        let button: Button = interface.widget("forget")
        name.onApply { [unowned self, unowned owner] in if let model { owner.rename(model, to: name.text) } }
        button.onPress { [unowned self, unowned owner] in if let model { owner.forget(model) } }
    }

    func show(_ model: DevicesPage.Row) {
        row.title = model.title
        row.subtitle = model.subtitle
        // Otherwise keep what the user is typing.
        if self.model?.name != model.name { name.text = model.name }
        forget.isVisible = !model.isThisOne
        self.model = model
    }

    /// Takes back the name, if it is being typed.
    func takeBack() -> Bool {
        guard name.hasFocus, let model, name.text != model.name else { return false }
        name.text = model.name
        return true
    }

    var isChangeable = true {
        didSet {
            if row.canExpand == isChangeable { return }
            row.canExpand = isChangeable
            // libadwaita expands a row when it becomes expandable.
            row.isExpanded = false
        }
    }
}
