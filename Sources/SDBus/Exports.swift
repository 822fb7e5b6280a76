// SPDX-License-Identifier: Apache-2.0

/// The connection and its messages are isolated to ``BusActor``: code that uses them needs the event loop's names.
@_exported public import EventLoop
