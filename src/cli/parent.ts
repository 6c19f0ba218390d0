/**
 * A package manager runs a script in a shell, and a signal may end both of them without reaching what they run: that
 * would go on as nobody's child. Called by the command `work`.
 */

const LOOK_MS = 250

/**
 * Calls `gone` once when the process that started this one has ended, where a package manager did; elsewhere (nohup, a
 * shell that is left) a parent may leave on purpose. Returns the function that ends the watch.
 */
export function onParentGone(gone: () => void, host: Pick<NodeJS.Process, 'env' | 'ppid'> = process): () => void {
  if (host.env.npm_lifecycle_event === undefined) return () => {}
  const parent = host.ppid
  const timer = setInterval(() => {
    if (host.ppid === parent) return
    clearInterval(timer)
    gone()
  }, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
