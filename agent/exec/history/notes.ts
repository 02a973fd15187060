// Reports on commands on their way into the spool, which may be on a full disk for a while.
import type { Logger } from 'pino'
import { type CommandReport, OUTPUT_CHUNK_BYTES } from '../../../shared/api/reports.ts'
import type { Spool } from '../../reports/spool.ts'

export type Notes = {
  /** False when it cannot be kept now. */
  note(report: CommandReport): boolean
  /** Tries again until it is kept. Resolves false when the signal aborts first. */
  noteAtLast(report: CommandReport, signal: AbortSignal): Promise<boolean>
  /** The same, until it is on the disk. */
  appendAtLast(report: CommandReport, signal: AbortSignal): Promise<boolean>
}

const RETRY_MS = 5_000

export function createNotes(spool: Pick<Spool, 'note' | 'append'>, log: Pick<Logger, 'error'>): Notes {
  const failed = (err: unknown, { commandId, type }: CommandReport): false => {
    log.error({ err, commandId, type }, 'a report on a command cannot be kept')
    return false
  }

  function note(report: CommandReport): boolean {
    try {
      spool.note(report)
      return true
    } catch (error) {
      return failed(error, report)
    }
  }

  const append = (report: CommandReport): Promise<boolean> =>
    spool.append(report).then(
      () => true,
      (error: unknown) => failed(error, report),
    )

  async function atLast(keep: typeof note | typeof append, report: CommandReport, signal: AbortSignal) {
    while (!signal.aborted) {
      if (await keep(report)) return true
      await pause(RETRY_MS, signal)
    }
    return false
  }

  return {
    note,
    noteAtLast: (report, signal) => atLast(note, report, signal),
    appendAtLast: (report, signal) => atLast(append, report, signal),
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
