// Writes the state of the connection to `<stateDir>/connection.json`, for the installer and `status` on this machine.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { replaceFile } from '../durable-file.ts'
import type { DisconnectReason } from '../tunnel/disconnect-reason.ts'
import { agentVersion } from '../version.ts'

/** The content of connection.json. `at` is in milliseconds since the epoch. */
export type ConnectionRecord = { at: number; version: string } & (
  | { connected: true }
  | {
      connected: false
      reason: string
      /** The HTTP status, error code and message with which the coordinator has refused the last attempt. */
      status?: number
      code?: string
      message?: string
    }
)

export type ConnectionFile = {
  recordConnected(): void
  recordDisconnected(reason: DisconnectReason): void
  /** Resolves when the last record is written. */
  close(): Promise<void>
}

export function createConnectionFile(options: {
  stateDir: string
  clock: Clock
  log: Pick<Logger, 'warn'>
}): ConnectionFile {
  const { stateDir, clock, log } = options
  const path = join(stateDir, 'connection.json')
  let writing = Promise.resolve()

  function write(record: ConnectionRecord): void {
    writing = writing.then(async () => {
      try {
        await replaceFile(path, `${JSON.stringify(record)}\n`)
      } catch (err) {
        log.warn({ err, path }, 'failed to record the state of the connection')
      }
    })
  }

  return {
    recordConnected: () => write({ connected: true, at: clock.now(), version: agentVersion }),
    recordDisconnected({ reconnectAfterMs: _, ...disconnect }) {
      write({ connected: false, at: clock.now(), version: agentVersion, ...disconnect })
    },
    close: () => writing,
  }
}
