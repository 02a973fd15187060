// Reports on commands on their way into the spool, which may be on a full disk for a while.
import type { Logger } from 'pino'
import { type CommandReport, OUTPUT_CHUNK_BYTES } from '../../../shared/api/reports.ts'
import type { Spool } from '../../reports/spool.ts'

export type Notes = {
  /** False when it cannot be kept now. */
  note(report: CommandReport): boolean
  /** Tries again until it is kept. Resolves false when the signal aborts first. */
  noteAtLast(report: CommandReport, signal: AbortSignal): Promise<boolean>
}

const RETRY_MS = 5_000

export function createNotes(
  spool: Pick<Spool, 'note'>,
  log: Pick<Logger, 'error'>,
  retryMs = RETRY_MS,
): Notes {
  function note(report: CommandReport): boolean {
    try {
      spool.note(report)
      return true
    } catch (err) {
      log.error(
        { err, commandId: report.commandId, type: report.type },
        'a report on a command cannot be kept',
      )
      return false
    }
  }

  return {
    note,
    async noteAtLast(report, signal) {
      while (!signal.aborted) {
        if (note(report)) return true
        await pause(retryMs, signal)
      }
      return false
    },
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}

/** The bytes as reports, in pieces that fit. */
export function* outputReports(
  commandId: string,
  stream: 'stdout' | 'stderr',
  offset: number,
  bytes: Buffer,
): Generator<CommandReport> {
  for (let from = 0; from < bytes.length; from += OUTPUT_CHUNK_BYTES) {
    const data = bytes.toString('base64', from, Math.min(bytes.length, from + OUTPUT_CHUNK_BYTES))
    yield { type: 'command.output', commandId, stream, offset: offset + from, data }
  }
}
