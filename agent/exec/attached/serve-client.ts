// Serves one client of an attached command: sends the output within the client's window, and receives stdin.
import type { Logger } from 'pino'
import type { Offsets } from '../../../shared/api/processes.ts'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'
import { freeBuffer } from '../../../shared/free-buffer.ts'
import type { AttachSocket } from '../../attach/attach-socket.ts'
import { toExitFields } from '../detached/exit-fields.ts'
import { type DetachedProcess, OUTPUT_STREAMS, type ProcessExit } from '../detached/types.ts'
import { createOutputWatcher, type OutputWatcher } from '../output-watcher.ts'
import type { Attachment } from './attachment.ts'
import { ClientMessages } from './client-messages.ts'
import { OutputWindow } from './output-window.ts'

/** The most bytes of one read of a log. */
const READ_BYTES = 4 * ATTACH_LIMITS.chunkBytes

/**
 * Returns when the connection is closed, or when the exit is sent.
 * @param from the client's position. An offset beyond the end is moved to the end.
 */
export async function serveAttachedClient(
  attachment: Attachment,
  socket: AttachSocket,
  from: Offsets,
  log: Logger,
): Promise<void> {
  const { process, stdin } = attachment
  const { logs, processId } = process
  const window = new OutputWindow(from)
  const watcher = createOutputWatcher(process, OUTPUT_STREAMS)
  const messages = new ClientMessages({ attachment, socket, window })

  const disconnect = attachment.connect({
    onReplaced: () => messages.reject('Another client attached to this command.'),
    onStdinWritten: (offset) => socket.send({ type: 'stdin', offset }),
    onStdinClosed: () => socket.send({ type: 'stdinClosed' }),
  })
  const onClosed = () => {
    messages.close()
    disconnect()
    watcher.close()
    window.close()
  }
  socket.signal.addEventListener('abort', onClosed, { once: true })
  if (socket.signal.aborted) onClosed()
  // The listener is added before the first await: the client's first messages may have arrived.
  socket.onMessage((message) => messages.receive(message))

  try {
    for (const name of OUTPUT_STREAMS) window.limitPosition(name, await logs[name].size())
    socket.send({
      type: 'attached',
      processId,
      stdinOffset: stdin?.acceptedOffset() ?? 0,
      ...toPosition(window.sent),
    })
    messages.start()
    if (stdin?.isClosed && !stdin.isEnded) socket.send({ type: 'stdinClosed' })
    const exit = await sendAllOutput(process, socket, window, watcher)
    if (exit === null) return
    messages.expectExitReceived()
    socket.send({ type: 'exit', ...toExitFields(exit), ...toPosition(window.sent) })
  } catch (err) {
    log.error({ err, processId }, 'failed to read the output of an attached command')
    socket.close({ type: 'error', code: 'exec_failed', message: `The output cannot be read: ${String(err)}` })
  } finally {
    watcher.close()
  }
}

/** Resolves with the exit when all output is sent; with null when the connection is closed. */
async function sendAllOutput(
  process: DetachedProcess,
  socket: AttachSocket,
  window: OutputWindow,
  watcher: OutputWatcher,
): Promise<ProcessExit | null> {
  while (!socket.signal.aborted) {
    // Read the exit before the logs: the logs of an exited process are complete.
    const { exit } = process
    if (await sendNextOutput(process, socket, window)) continue
    if (window.freeBytes <= 0) await window.waitForSpace()
    else if (exit === null) await watcher.waitForChange()
    else return exit
  }
  return null
}

/** Sends the next output of both streams. Returns whether there was any. */
async function sendNextOutput(
  { logs }: DetachedProcess,
  socket: AttachSocket,
  window: OutputWindow,
): Promise<boolean> {
  let hasOutput = false
  for (const name of OUTPUT_STREAMS) {
    const max = Math.min(READ_BYTES, window.freeBytes)
    if (max <= 0) continue
    const { offset, bytes } = await logs[name].read(window.sent[name], max)
    if (offset > window.sent[name]) {
      window.advance(name, offset)
      socket.send({ type: 'skipped', ...toPosition(window.sent) })
    }
    if (bytes.length === 0) continue
    hasOutput = true
    window.advance(name, offset + bytes.length)
    await socket.sendOutput(name, bytes)
    freeBuffer(bytes)
  }
  return hasOutput
}

const toPosition = ({ stdout, stderr }: Readonly<Offsets>) => ({
  stdoutOffset: stdout,
  stderrOffset: stderr,
})
