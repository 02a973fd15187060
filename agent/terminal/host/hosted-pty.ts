// The pseudoterminal of a terminal host, as a session uses it.
import type { Logger } from 'pino'
import { ATTACH_LIMITS } from '../../../shared/attach-format.ts'
import type { StartRecord } from '../../exec/detached/record.ts'
import { signalName } from '../../exec/signal-name.ts'
import { sendSignal } from '../../exec/terminate-tree.ts'
import { isAlive } from '../../process-table.ts'
import type { Pty } from '../pty.ts'
import type { HostConnection, HostState } from './connection.ts'
import { encodeClose, encodeInput, encodeResize, encodeStoreScreen } from './frames.ts'

export type HostedPtyOptions = {
  connection: HostConnection
  state: HostState
  processes: StartRecord
  log: Logger
  /** Called when the host is not needed any more. */
  onRelease(): Promise<void>
}

export function createHostedPty({ connection, state, processes, log, onRelease }: HostedPtyOptions): Pty {
  const { start, end, cols, rows, clients } = state
  /** Resolves when the host has written the previous input. */
  let written = Promise.withResolvers<void>()
  if (!state.isWriting) written.resolve()
  const replayed = Promise.withResolvers<void>()
  let finishedAt: number | null = null
  let isDisconnecting = false
  let hasEnded = false
  const checkReplayed = () => {
    if (!state.hasExited && connection.received >= end) replayed.resolve()
  }

  const exit = connection.exit.then((exit) => {
    hasEnded = true
    written.resolve()
    finishedAt = exit?.finishedAt ?? null
    if (exit === null && !isDisconnecting) {
      // Without the connection, the session cannot be used. The kernel hangs up the terminal of a killed host.
      log.error(
        { err: connection.error, pid: processes.command.pid },
        'the connection to a terminal host is lost',
      )
      if (isAlive(processes.runner)) sendSignal(processes.runner.pid, 'SIGKILL')
      return { exitCode: null, signal: 'HUP' }
    }
    if (exit === null) return new Promise<never>(() => undefined)
    const { exitCode, signal } = exit
    return signal === 0 ? { exitCode, signal: null } : { exitCode: null, signal: signalName(signal) }
  })

  void exit.then(() => replayed.resolve())

  return {
    ...processes.command,
    start(onOutput) {
      connection.start({
        onOutput(bytes) {
          onOutput(bytes)
          checkReplayed()
        },
        onWritten: () => written.resolve(),
      })
      checkReplayed()
    },
    async write(bytes, { client, offset }) {
      for (let at = 0; at < bytes.length; at += ATTACH_LIMITS.chunkBytes) {
        await written.promise
        if (hasEnded) return
        written = Promise.withResolvers()
        const part = bytes.subarray(at, at + ATTACH_LIMITS.chunkBytes)
        connection.send(encodeInput({ client, offset: offset + at, bytes: part }))
      }
      await written.promise
    },
    resize: (cols, rows) => connection.send(encodeResize(cols, rows)),
    pause: () => connection.setPaused(true),
    resume: () => connection.setPaused(false),
    exit,
    host: {
      version: state.version,
      offset: start,
      screen: state.screen !== null && isWithin(state.screen.offset, start, end) ? state.screen : null,
      size: { cols, rows },
      clients,
      replayed: replayed.promise,
      finishedAt: () => finishedAt,
      addClient: (client) => connection.send(encodeInput({ client, offset: 0, bytes: Buffer.alloc(0) })),
      setNeededOffset: (offset) => connection.setNeededOffset(offset),
      storeScreen(snapshot) {
        const frame = encodeStoreScreen(snapshot)
        if (frame !== null) connection.send(frame)
      },
      disconnect() {
        isDisconnecting = true
        connection.disconnect()
      },
      async release() {
        isDisconnecting = true
        connection.end(encodeClose())
        await onRelease()
      },
    },
  }
}

const isWithin = (value: number, min: number, max: number): boolean => value >= min && value <= max
