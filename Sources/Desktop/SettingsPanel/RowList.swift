// SPDX-License-Identifier: Apache-2.0

internal import Adwaita

/// A row that shows a model.
@MainActor
protocol RowView: AnyObject {
    associatedtype Model: Identifiable & Equatable
    var widget: Widget { get }
    func show(_ model: Model)
}

/// The rows of a group. A row exists as long as its model, so it keeps the keyboard focus and stays expanded.
@MainActor
final class RowList<View: RowView> {
    private let group: PreferencesGroup
    private let make: @MainActor (View.Model) -> View
    private var order: [View.Model.ID] = []
    private var viewsByID: [View.Model.ID: View] = [:]
    /// The rows' views, in no order.
    var views: [View] { Array(viewsByID.values) }

    /// Whether the rows take input. If not, they are greyed out.
    var areSensitive = true { didSet { for view in views { view.widget.isSensitive = areSensitive } } }

    init(_ group: PreferencesGroup, make: @escaping @MainActor (View.Model) -> View) {
        (self.group, self.make) = (group, make)
    }

    func show(_ new: [View.Model]) {
        let (former, kept) = (order, Set(new.map(\.id)))
        order = new.map(\.id)
        for id in former where !kept.contains(id) {
            if let view = viewsByID.removeValue(forKey: id) { group.remove(view.widget) }
        }
        for model in new {
            let view = viewsByID[model.id] ?? make(model)
            if viewsByID.updateValue(view, forKey: model.id) == nil { group.add(view.widget) }
            view.show(model)
        }
        if former != order { group.order(order.compactMap { viewsByID[$0]?.widget }) }
    }
}
