// SPDX-License-Identifier: Apache-2.0

// An app in its own process, for tests of how processes affect each other.
//
//     sample-app                 prints the colours that others choose
//     sample-app choose COLOUR   chooses one, and follows the others
//     sample-app literals        writes values from literals
//     sample-app exit            writes, and ends at once
//     sample-app read            reads, and ends at once
//     sample-app synchronize     writes, synchronizes and ends at once
//     sample-app fork-open       opens a store in a child that forked without exec
//     sample-app fork            reads, writes and synchronizes in a child that forked without exec

import Foundation
import UbiquitousStore

setlinebuf(stdout)
let store = NSUbiquitousKeyValueStore.default
let words = CommandLine.arguments.dropFirst()

switch words.first {
case "literals":
    store.set(7, forKey: "integer")
    store.set(7.5, forKey: "real")
    store.set(true, forKey: "boolean")
    store.set("text", forKey: "string")
    store.set([1, 2], forKey: "array")
    store.set(["a": 1], forKey: "dictionary")
    store.set(Float(0.5), forKey: "float")
    settle()
case "exit":
    store.set("last", forKey: "key")
    exit(0)
case "read":
    print(store.string(forKey: "key") ?? "nothing")
case "synchronize":
    store.set("last", forKey: "key")
    exit(store.synchronize() ? 0 : 1)
case "fork":
    forkAndWrite()
case "fork-open":
    forkAndOpen()
default:
    let viewController = ViewController()
    viewController.prepareKeyValueStoreForUse()
    if words.first == "choose", let color = words.last.flatMap({ Int($0) }) { viewController.choose(color) }
    print("ready")
    RunLoop.main.run()
}

/// Synchronizes until the service answers. One call waits for at most a second, too short for a busy machine.
func settle() {
    while !store.synchronize() { usleep(10_000) }
}

/// Forks. Swift has no fork(), but C libraries that an app uses may call it.
func forkChild() -> pid_t {
    typealias Fork = @convention(c) () -> pid_t
    store.set("parent", forKey: "key")
    settle()
    guard let fork = dlsym(nil, "fork") else { exit(1) }
    return unsafeBitCast(fork, to: Fork.self)()
}

func forkAndOpen() {
    let child = forkChild()
    if child == 0 {
        // The child has no threads for tasks, so this one runs here until it suspends.
        Task.immediate {
            do {
                _ = try await UbiquitousStore.open()
                print("child opens")
            } catch {
                print("child opens: \((error as? UbiquitousStoreError)?.code.description ?? "\(error)")")
            }
            fflush(stdout)
        }
        _exit(0)
    }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    exit(status == 0 ? 0 : 1)
}

func forkAndWrite() {
    let child = forkChild()
    if child == 0 {
        print("child reads \(store.string(forKey: "key") ?? "nothing")")
        store.set("child", forKey: "key")
        print("child synchronizes: \(store.synchronize())")
        fflush(stdout)
        _exit(0)
    }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    store.set(status == 0 ? "parent again" : "the child failed", forKey: "key")
    settle()
}
