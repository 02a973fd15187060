// Serves one client of an attached command: sends the output within the client's window, and receives stdin.
import type { FastifyBaseLogger } from 'fastify'
import type { ClientMessage, StdinBytes } from '../../../shared/api/attach.ts'
import type { Offsets } from '../../../shared/api/processes.ts'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'
import { freeBuffer } from '../../../shared/free-buffer.ts'
import type { AttachSocket } from '../../attach/attach-socket.ts'
import { toExitFields } from '../detached/exit-fields.ts'
import { OUTPUT_STREAMS } from '../detached/types.ts'
import { createOutputWatcher } from '../output-watcher.ts'
import type { Attachment } from './attachment.ts'

/** The most bytes of one read of a log. */
const READ_BYTES = 4 * ATTACH_LIMITS.chunkBytes

/**
 * Returns when the connection is closed.
 * @param from the client's position. An offset beyond the end is moved to the end.
 */
export async function serveAttachedClient(
  attachment: Attachment,
  socket: AttachSocket,
  from: Offsets,
  log: FastifyBaseLogger,
): Promise<void> {
  const { process, stdin } = attachment
  const { logs, processId } = process
  const sent = { ...from }
  const acknowledged = { ...from }
  const watcher = createOutputWatcher(process, OUTPUT_STREAMS)
  let acknowledge = Promise.withResolvers<void>()
  let isExitSent = false
  /** False once the client is closing: its remaining messages are ignored. */
  let isActive = true

  const rejectClient = (message: string) => {
    isActive = false
    socket.close({ type: 'error', code: 'invalid_request', message })
  }

  const onAcknowledge = (stdout: number, stderr: number) => {
    if (stdout > sent.stdout || stderr > sent.stderr)
      return rejectClient('ack has an offset of output that was not sent')
    acknowledged.stdout = Math.max(acknowledged.stdout, stdout)
    acknowledged.stderr = Math.max(acknowledged.stderr, stderr)
    attachment.acknowledge(acknowledged)
    acknowledge.resolve()
  }
  const onStdin = (bytes: Buffer) => {
    if (stdin === null) return rejectClient('The command was started without stdin.')
    if (stdin.queuedBytes() + bytes.length > ATTACH_LIMITS.stdinWindowBytes + ATTACH_LIMITS.chunkBytes)
      return rejectClient(`The client sent more than ${ATTACH_LIMITS.stdinWindowBytes} bytes of stdin ahead.`)
    stdin.write(bytes)
    if (stdin.isClosed) socket.send({ type: 'stdin', offset: stdin.acceptedOffset() })
  }
  const onMessage = (message: ClientMessage | StdinBytes) => {
    if (!isActive) return
    if (message.type === 'ack') onAcknowledge(message.stdoutOffset, message.stderrOffset)
    else if (message.type === 'stdinBytes') onStdin(message.bytes)
    else if (message.type === 'stdinEnd') stdin?.end()
    else if (message.type === 'detach') {
      attachment.detach()
      socket.close()
    } else if (message.type === 'exitReceived' && isExitSent) {
      attachment.finish()
      socket.close()
    }
  }

  /** Sends the next output of both streams. Returns whether there was any. */
  async function sendOutput(): Promise<boolean> {
    let hasOutput = false
    for (const name of OUTPUT_STREAMS) {
      const max = Math.min(READ_BYTES, getWindow())
      if (max <= 0) continue
      const { offset, bytes } = await logs[name].read(sent[name], max)
      if (offset > sent[name]) {
        sent[name] = offset
        socket.send({ type: 'skipped', ...toPosition(sent) })
      }
      if (bytes.length === 0) continue
      hasOutput = true
      sent[name] += bytes.length
      await socket.sendOutput(name, bytes)
      freeBuffer(bytes)
    }
    return hasOutput
  }
  const getWindow = () =>
    ATTACH_LIMITS.outputWindowBytes -
    (sent.stdout - acknowledged.stdout) -
    (sent.stderr - acknowledged.stderr)

  const disconnect = attachment.connect({
    onReplaced: () => rejectClient('Another client attached to this command.'),
    onStdinWritten: (offset) => socket.send({ type: 'stdin', offset }),
    onStdinClosed: () => socket.send({ type: 'stdinClosed' }),
  })
  const onClosed = () => {
    isActive = false
    disconnect()
    watcher.close()
    acknowledge.resolve()
  }
  socket.signal.addEventListener('abort', onClosed, { once: true })
  if (socket.signal.aborted) onClosed()
  // Before the first await: the client's first messages may have arrived.
  const earlyMessages: (ClientMessage | StdinBytes)[] = []
  let isAttached = false
  socket.onMessage((message) => {
    if (isAttached) onMessage(message)
    else earlyMessages.push(message)
  })

  try {
    for (const name of OUTPUT_STREAMS) {
      sent[name] = Math.min(sent[name], await logs[name].size())
      acknowledged[name] = sent[name]
    }
    socket.send({
      type: 'attached',
      processId,
      stdinOffset: stdin?.acceptedOffset() ?? 0,
      ...toPosition(sent),
    })
    isAttached = true
    for (const message of earlyMessages) onMessage(message)
    if (stdin?.isClosed && !stdin.isEnded) socket.send({ type: 'stdinClosed' })
    while (!socket.signal.aborted) {
      // Read the exit before the logs: the logs of an exited process are complete.
      const { exit } = process
      acknowledge = Promise.withResolvers()
      if (await sendOutput()) continue
      if (getWindow() <= 0) await acknowledge.promise
      else if (exit === null) await watcher.waitForChange()
      else {
        isExitSent = true
        socket.send({ type: 'exit', ...toExitFields(exit), ...toPosition(sent) })
        return
      }
    }
  } catch (err) {
    log.error({ err, processId }, 'failed to read the output of an attached command')
    socket.close({ type: 'error', code: 'exec_failed', message: `The output cannot be read: ${String(err)}` })
  } finally {
    watcher.close()
  }
}

const toPosition = ({ stdout, stderr }: Offsets) => ({ stdoutOffset: stdout, stderrOffset: stderr })
