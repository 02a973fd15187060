// A client of a terminal session that reconnects by itself: continues its output and input after each cut.
import { randomBytes } from 'node:crypto'
import type { ServerMessage } from '../../shared/api/attach.ts'
import { type AttachClient, connectAttachClient } from './attach-client.ts'
import { createTerminal } from './terminal-screen.ts'
import { waitUntil } from './wait-until.ts'

const RESET = '\x1bc'
const CHUNK_BYTES = 16 * 1024
const RETRY_MS = 50

export type ResumingTerminal = ReturnType<typeof openResumingTerminal>

/** @param getUrl the session's box: http://…/v1/box/NAME */
export function openResumingTerminal(getUrl: () => string, headers: Record<string, string>, session: string) {
  const terminal = createTerminal(80, 24)
  const client = randomBytes(8).toString('hex')
  const closed = new AbortController()
  const counts = { connections: 0, screens: 0 }
  let typed = Buffer.alloc(0)
  let offset: number | undefined
  let current: AttachClient | undefined
  let isAttached = false
  let exit: Extract<ServerMessage, { type: 'exit' }> | undefined
  let failure: unknown

  function sendInput(from: number): void {
    for (let at = from; at < typed.length; at += CHUNK_BYTES)
      current?.sendStdin(typed.subarray(at, at + CHUNK_BYTES))
  }

  async function connectOnce(): Promise<void> {
    const query = new URLSearchParams({ session, client, create: 'never' })
    if (offset !== undefined) query.set('offset', String(offset))
    const connection = await connectAttachClient(`${getUrl()}/terminal?${query}`, headers)
    current = connection
    counts.connections++
    connection.observeMessages((message) => {
      if (message.type === 'screen') {
        counts.screens++
        terminal.write(RESET)
      }
      if (message.type === 'attached') {
        isAttached = true
        sendInput(message.stdinOffset)
      }
      if (message.type === 'exit') exit = message
      if (message.type === 'error' && message.code !== 'box_unreachable') failure = message
    })
    connection.takeOutput(({ bytes }) => terminal.write(bytes))
    await connection.closed
    isAttached = false
    const attached = connection.find('attached')
    if (attached === undefined) return
    // A screen follows unless the output continues at the requested offset. Until all bytes of the screen have arrived,
    // the terminal does not show what precedes the offset.
    const isContinued = attached.stdoutOffset === offset || connection.find('screen') !== undefined
    const isDrawn = isContinued && connection.pendingScreenBytes() === 0
    offset = isDrawn ? connection.position.stdoutOffset : undefined
  }

  async function run(): Promise<void> {
    while (!closed.signal.aborted && exit === undefined && failure === undefined) {
      // The coordinator may be restarting.
      await connectOnce().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }

  const finished = run()
  return {
    terminal,
    counts,
    type(text: string) {
      const from = typed.length
      typed = Buffer.concat([typed, Buffer.from(text)])
      if (isAttached) sendInput(from)
    },
    waitForExit: () =>
      waitUntil('the program exits', () => {
        if (failure !== undefined) throw new Error(`the terminal failed: ${JSON.stringify(failure)}`)
        return exit
      }),
    /** Resolves when everything that has arrived is drawn. */
    flush: () => new Promise<void>((resolve) => terminal.write('', resolve)),
    async close() {
      closed.abort()
      current?.cut()
      await finished
    },
  }
}
