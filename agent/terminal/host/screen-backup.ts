// Stores the screen of a session in its terminal host from time to time. The next agent draws it, and parses the output that
// follows, of which the host holds only the last bytes.
import type { PtyHost } from '../pty.ts'
import type { Screen } from '../screen.ts'

/** The host holds four times this output: see native/terminal.c. */
const INTERVAL_BYTES = 1024 * 1024
/** A person who drags the border of a window resizes the screen many times. */
const RESIZE_DELAY_MS = 1_000

export type ScreenBackup = {
  /** Call after bytes have been parsed. */
  onParsed(): void
  /** Call after a resize: the next agent must parse the output at the size that it was written for. */
  onResize(): void
  close(): void
}

export function createScreenBackup(host: Pick<PtyHost, 'storeScreen'>, screen: Screen): ScreenBackup {
  let storedOffset = screen.parsedOffset()
  let timer: NodeJS.Timeout | undefined

  function store(): void {
    clearTimeout(timer)
    timer = undefined
    storedOffset = screen.parsedOffset()
    host.storeScreen(screen.snapshot())
  }

  return {
    onParsed() {
      if (screen.parsedOffset() - storedOffset >= INTERVAL_BYTES) store()
    },
    onResize() {
      timer ??= setTimeout(store, RESIZE_DELAY_MS).unref()
    },
    close() {
      clearTimeout(timer)
    },
  }
}
