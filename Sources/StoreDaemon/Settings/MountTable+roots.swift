// SPDX-License-Identifier: Apache-2.0

package import Files

extension MountTable {
    /// Returns which folder roots are mounted so that this process can only read them, in sentences.
    package func problems(ofFolderRoots paths: [String]) -> [String] {
        paths.filter { mount(of: $0)?.isReadOnly == true }.map {
            """
            FolderRoot=\($0) is read-only for the service, because of its unit's sandbox. Create the folder if it \
            doesn't exist, name it under ReadWritePaths= in a drop-in, as \
            /usr/share/doc/ubiquitous-store/examples/folder-root.conf does, and restart the service.
            """
        }
    }
}
