// SPDX-License-Identifier: Apache-2.0

internal import Adwaita
internal import GLibLoop
internal import PanelModel
internal import PropertyList

/// The page of one app's store, over the others.
@MainActor
final class StoreView {
    let page: Widget
    private let store: AppsPage.Row
    private weak var owner: PanelWindow?
    private let group: PreferencesGroup
    private var rows: RowList<ValueRow>?

    init(_ store: AppsPage.Row, _ owner: PanelWindow) {
        (self.store, self.owner) = (store, owner)
        let interface = Interface(PackageResources.store_ui)
        page = interface.widget("page")
        group = interface.widget("values")
        let title: WindowTitle = interface.widget("title")
        title.title = store.title
        let (back, forget, remove): (Button, Button, Button) = (
            interface.widget("back"), interface.widget("forget"), interface.widget("remove")
        )
        rows = RowList(group) { [unowned self] _ in ValueRow(self) }
        back.onPress { [weak owner] in owner?.closeStore() }
        // The page remains on the screen for a moment after it was closed.
        forget.onPress { [weak self] in self?.askForgetting() }
        remove.onPress { [weak self] in self?.askRemoving() }
        look()
    }

    /// Reads the store's values.
    func look() {
        guard let service = owner?.panel.service else { return }
        MainThread.task { [weak self, store] in
            do {
                let page = StorePage(try await service.values(of: store.id))
                self?.show(page)
            } catch {
                self?.owner?.window.toast(ErrorSentence.text(error))
            }
        }
    }

    private func show(_ page: StorePage) {
        group.explanation =
            page.rows.isEmpty ? tr("There are none yet.") : tr("Open one to see what it was before.")
        rows?.show(page.rows)
        rows?.areSensitive = true
    }

    /// Shows why the settings can't be changed.
    func showUnavailable(_ reason: String) {
        group.explanation = reason
        rows?.areSensitive = false
    }

    // MARK: Earlier values

    fileprivate func history(of key: Text, _ handler: @escaping @MainActor (Result<HistoryPage, any Error>) -> Void) {
        guard let owner else { return }
        let (service, names) = (owner.panel.service, owner.state?.deviceNames ?? [:])
        MainThread.task { [store] in
            do {
                let entries = try await service.history(of: key, in: store.id)
                handler(.success(HistoryPage(entries, devices: names, now: microsecondsNow())))
            } catch {
                handler(.failure(error))
            }
        }
    }

    fileprivate func restore(_ value: Value, as key: Text) {
        put(value, as: key) { [weak self] before in
            self?.owner?.window.toast(tr("Restored"), button: tr("Undo")) { [weak self] in
                self?.put(before, as: key) { _ in }
            }
        }
    }

    private func put(_ value: Value?, as key: Text, _ done: @escaping @MainActor (Value?) -> Void) {
        guard let owner else { return }
        let service = owner.panel.service
        MainThread.task { [weak self, store] in
            do {
                done(try await service.put(value, as: key, in: store.id))
            } catch {
                self?.owner?.window.toast(ErrorSentence.text(error))
            }
            // This also refreshes this page.
            self?.owner?.panel.look()
        }
    }

    // MARK: Removing

    private func askForgetting() {
        owner?.ask(
            tr("Forget the Settings of “%1” on This Device?", store.title.quoted),
            tr("They come back when the app is opened here again, if the account has them."),
            [("forget", tr("_Forget"), .destructive)]
        ) { [weak self] in if $0 == "forget" { self?.end(everywhere: false) } }
    }

    private func askRemoving() {
        owner?.ask(
            tr("Remove the Settings of “%1” Everywhere?", store.title.quoted),
            tr("They go on every device of the account, and the app starts with its own defaults."),
            [("remove", tr("_Remove"), .destructive)]
        ) { [weak self] in if $0 == "remove" { self?.end(everywhere: true) } }
    }

    private func end(everywhere: Bool) {
        let identifier = store.id
        owner?.perform { try await $0.remove(identifier, everywhere: everywhere) }
        owner?.closeStore()
    }
}

/// A setting, with its earlier values.
@MainActor
private final class ValueRow: RowView {
    private let row: ExpanderRow
    private weak var owner: StoreView?
    private var model: StorePage.Row?
    private var earlier: [Widget] = []
    var widget: Widget { row }

    init(_ owner: StoreView) {
        self.owner = owner
        row = Interface(PackageResources.value_row_ui).widget("row")
        row.onExpansion { [weak self] in if let self, row.isExpanded { look() } }
    }

    func show(_ model: StorePage.Row) {
        if model == self.model { return }
        self.model = model
        (row.title, row.subtitle) = (model.title, model.subtitle)
        if row.isExpanded { look() }
    }

    private func look() {
        guard let key = model?.id else { return }
        owner?.history(of: key) { [weak self] history in
            guard let self else { return }
            for widget in earlier { row.remove(widget) }
            switch history {
            case .success(let page): earlier = lines(page, of: key)
            case .failure(let error): earlier = [ActionRow(title: ErrorSentence.text(error))]
            }
            for widget in earlier { row.add(widget) }
        }
    }

    private func lines(_ page: HistoryPage, of key: Text) -> [Widget] {
        if page.rows.isEmpty { return [ActionRow(title: tr("No earlier values"))] }
        return page.rows.map { entry in
            let line = ActionRow(title: entry.title, subtitle: entry.subtitle)
            let restore = Button(tr("Re_store"))
            restore.onPress { [weak owner] in owner?.restore(entry.value, as: key) }
            line.addSuffix(restore)
            return line
        }
    }
}
