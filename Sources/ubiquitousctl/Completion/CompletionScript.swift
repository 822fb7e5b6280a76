// SPDX-License-Identifier: Apache-2.0

/// The completion scripts that ArgumentParser generates, with what they lack.
enum CompletionScript {
    /// Returns a script for any of the shells with everything added. Any other text stays as it is.
    static func completed(_ script: String) -> String {
        allowingUnset(HistoryCompletion.added(to: HelpCompletion.added(to: script)))
    }

    /// Lets the script for bash read words that may not be there, which is an error after `set -u`. When its function
    /// returns, it restores the shell's options.
    private static func allowingUnset(_ script: String) -> String {
        script.replacing("    set +o history +o posix\n", with: "    set +o history +o nounset +o posix\n")
    }
}
