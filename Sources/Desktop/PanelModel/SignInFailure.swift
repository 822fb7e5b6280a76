// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import Glibc
internal import ServiceMessages
internal import UbiquitousStore

extension FieldError {
    /// Describes an error of the service, with the field that it belongs to.
    package init(_ error: any Error, in form: SignInForm) {
        switch error {
        case let error as FieldError: self = error
        case let error as UbiquitousStoreError:
            self.init(
                field: Self.field(of: error.code, in: form), sentence: Self.sentence(error, form),
                details: ServiceMessages.localized(error.message).shown)
        case let flaw as BrowserLogin.Flaw: self = flaw.fieldError
        case is CancellationError: self.init(field: nil, sentence: tr("Canceled."))
        default: self.init(field: nil, sentence: "\(error)".shown)
        }
    }

    private static func field(of code: UbiquitousStoreError.Code, in form: SignInForm) -> SignInField? {
        switch code {
        case .backendUnsupported where form.lacksUser: return .user
        case .backendAuthenticationFailed:
            if form.kind == .nextcloud { return .appPassword }
            if !form.text(.token).isEmpty { return .token }
            return form.kind.fields.contains(.password) ? .password : form.kind.placeField
        case .backendUnavailable, .backendFull, .backendUnsupported, .noAccount, .remoteFormatTooNew, .corrupt,
            .accessDenied, .invalidArguments:
            return form.kind.placeField
        default: return nil
        }
    }

    private static func sentence(_ error: UbiquitousStoreError, _ form: SignInForm) -> String {
        switch (error.code, form.kind) {
        case (.backendUnsupported, _) where form.lacksUser: tr("Enter the user name.")
        case (.accessDenied, .folder) where isFile(form.text(.path)): tr("This is a file. Enter a folder.")
        case (.backendUnavailable, .folder): tr("This folder can't be used.")
        case (.backendUnavailable, _): tr("The server can't be used.")
        case (.accessDenied, .folder): tr("The service isn't allowed to use this folder.")
        case (.conflict, _): tr("The account has settings already: switch off bringing this device's along.")
        case (.invalidArguments, _): tr("This can't be right.")
        default: ErrorSentence.text(error)
        }
    }

    private static func isFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFDIR
    }
}
