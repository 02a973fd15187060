// The feed of boxes, snapshots and operations. After each connect it begins again, so that no change can be missed.
import type { FeedMessage } from '../../shared/api/feed.ts'

export type FeedSocket = { close(): void }
export type SocketHandlers = { onMessage(text: string): void; onClose(code: number): void }

export type FeedOptions = {
  connect(handlers: SocketHandlers): FeedSocket
  /** Returns a function that cancels the timer. */
  setTimer(run: () => void, ms: number): () => void
  /** A number from 0 to 1. */
  random(): number
  /** A connection is open, and the feed begins again. */
  onBegin(): void
  onMessage(message: FeedMessage): void
  /** The connection is closed. `isRefused`: the session has no access any more, and the feed does not connect again. */
  onLost(lost: { code: number; isRefused: boolean }): void
}

export type Feed = { open(): void; close(): void }

/** The coordinator sends a message every 15 s. */
const SILENCE_MS = 35_000
const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 15_000
/** Of a connection that was refused or lost. */
export const ABNORMAL_CODE = 1006
/** `unauthorized` and `forbidden` of shared/close-codes.ts. */
const REFUSED_CODES = [3000, 3003]

export function createFeed(options: FeedOptions): Feed {
  const { connect, setTimer, random, onBegin, onMessage, onLost } = options
  let socket: FeedSocket | null = null
  let cancelTimer = () => {}
  let failures = 0

  function startTimer(run: () => void, ms: number): void {
    cancelTimer()
    cancelTimer = setTimer(run, ms)
  }

  function release(): void {
    cancelTimer()
    const current = socket
    socket = null
    current?.close()
  }

  function lose(code: number): void {
    release()
    const isRefused = REFUSED_CODES.includes(code)
    onLost({ code, isRefused })
    if (isRefused) return
    const delay = Math.min(FIRST_DELAY_MS * 2 ** failures, MAX_DELAY_MS)
    failures += 1
    startTimer(open, delay * (0.5 + random() / 2))
  }

  function open(): void {
    if (socket !== null) return
    const watch = () => startTimer(() => lose(ABNORMAL_CODE), SILENCE_MS)
    let hasBegun = false
    const current = connect({
      onMessage(text) {
        if (socket !== current) return
        watch()
        const message = JSON.parse(text) as FeedMessage
        if (!hasBegun) onBegin()
        hasBegun = true
        if (message.type === 'ready') failures = 0
        onMessage(message)
      },
      onClose(code) {
        if (socket === current) lose(code)
      },
    })
    socket = current
    watch()
  }

  return { open, close: release }
}
