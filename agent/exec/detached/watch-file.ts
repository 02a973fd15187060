// A file or folder that others change, watched by what the system tells.
import { type FSWatcher, watch } from 'node:fs'

/** Where the system has no watch left to give. */
const POLL_MS = 200

/** Calls back at each change; by looking again and again where nothing can be watched. */
export function watchFile(path: string, changed: (name: string | null) => void): () => void {
  let watcher: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  const poll = () => {
    watcher?.close()
    timer ??= setInterval(() => changed(null), POLL_MS).unref()
  }
  try {
    watcher = watch(path, { persistent: false }, (_event, name) => changed(name))
    watcher.on('error', poll)
  } catch {
    poll()
  }
  return () => {
    watcher?.close()
    clearInterval(timer)
  }
}
