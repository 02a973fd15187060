// The attached state of one command: its current client, its stdin, and the time limit without a client.
import { join } from 'node:path'
import type { Offsets } from '../../../shared/api/processes.ts'
import { type StartTimer, startWallTimer } from '../../running-clock.ts'
import { readStdinLength, writeDetachedMarker, writeStdinLength } from '../detached/record.ts'
import type { DetachedProcess } from '../detached/types.ts'
import { type ControlFifo, openControlFifo } from './control-fifo.ts'
import { createRestoredStdin, openStdinWriter, type StdinEvents, type StdinWriter } from './stdin-writer.ts'

/** The connected client of an attached command. */
export type AttachedClient = {
  /** Another client has connected. */
  onReplaced(): void
  onStdinWritten(offset: number): void
  onStdinClosed(): void
}

export type Attachment = {
  readonly process: DetachedProcess
  /** null: the command was started without stdin. */
  readonly stdin: StdinWriter | null
  /** Replaces the current client. Returns the function to call when the client disconnects. */
  connect(client: AttachedClient): () => void
  acknowledge(offsets: Offsets): void
  /** The command continues as a detached one. */
  detach(): void
  /** The client has received the exit. */
  finish(): void
  close(): void
}

export type AttachmentOptions = {
  process: DetachedProcess
  disconnectTimeoutMs: number
  startTimer?: StartTimer | undefined
  stdin: 'none' | 'open' | 'restored'
  /** No client was connected for disconnectTimeoutMs, since the command started, or since it exited. */
  onTimeout(): void
  onDetached(): void
  /** The exit was received. */
  onFinished(): void
}

export function createAttachment(options: AttachmentOptions): Attachment {
  const { process, disconnectTimeoutMs, startTimer = startWallTimer } = options
  const { onTimeout, onDetached, onFinished } = options
  const { dir } = process
  const control: ControlFifo = openControlFifo(dir)
  let client: AttachedClient | null = null
  let stopTimer: (() => void) | undefined
  let isClosed = false

  const restartTimer = () => {
    stopTimer?.()
    stopTimer = startTimer(onTimeout, disconnectTimeoutMs)
  }
  const stdin = createStdin(options, {
    onWritten: (offset) => client?.onStdinWritten(offset),
    onClosed: () => client?.onStdinClosed(),
    onEnd(offset) {
      writeStdinLength(dir, offset)
      control.endStdin()
    },
  })
  const close = () => {
    isClosed = true
    stopTimer?.()
    unsubscribeExit()
    control.close()
    stdin?.close()
  }
  const unsubscribeExit = process.onExit(() => {
    control.close()
    stdin?.close()
    if (client === null) restartTimer()
  })
  restartTimer()

  return {
    process,
    stdin,
    connect(newClient) {
      stopTimer?.()
      client?.onReplaced()
      client = newClient
      stdin?.reset()
      return () => {
        if (client !== newClient || isClosed) return
        client = null
        restartTimer()
      }
    },
    acknowledge: control.acknowledge,
    detach() {
      writeDetachedMarker(dir)
      control.detach()
      close()
      onDetached()
    },
    finish() {
      close()
      onFinished()
    },
    close,
  }
}

function createStdin(
  { stdin, process: { dir } }: AttachmentOptions,
  events: StdinEvents,
): StdinWriter | null {
  if (stdin === 'none') return null
  return stdin === 'open'
    ? openStdinWriter(join(dir, 'stdin'), events)
    : createRestoredStdin(readStdinLength(dir))
}
