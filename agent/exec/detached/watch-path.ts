// Watches a file or directory with inotify, and polls where no inotify watch is available.
import { type FSWatcher, watch } from 'node:fs'

const POLL_MS = 200

/**
 * Calls back after a change. While polling, calls back every 200 ms, also without a change.
 * @param onChange `name` is the changed directory entry; null while polling
 * @returns stops watching
 */
export function watchPath(path: string, onChange: (name: string | null) => void): () => void {
  let watcher: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  const poll = () => {
    watcher?.close()
    timer ??= setInterval(() => onChange(null), POLL_MS).unref()
  }
  try {
    watcher = watch(path, { persistent: false }, (_event, name) => onChange(name))
    watcher.on('error', poll)
  } catch {
    // The limit of inotify watches is reached (fs.inotify.max_user_watches), or the path does not exist.
    poll()
  }
  return () => {
    watcher?.close()
    clearInterval(timer)
  }
}
