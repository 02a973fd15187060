// Writes command reports to the spool, with retries after an error. Splits output into reports.
import type { Logger } from 'pino'
import type { CommandReport } from '../../../shared/api/reports.ts'
import { OUTPUT_CHUNK_BYTES } from '../../../shared/report-limits.ts'
import type { Spool } from '../../reports/spool.ts'

export type CommandReporter = {
  /** One attempt. False when the spool cannot store the report now. */
  tryReport(report: CommandReport): boolean
  /** Retries until the spool has the report. Resolves to false when the signal aborts first. */
  report(report: CommandReport, signal: AbortSignal): Promise<boolean>
  /** Like report(), but resolves only once the report is synced to disk. */
  reportDurably(report: CommandReport, signal: AbortSignal): Promise<boolean>
}

const RETRY_MS = 5_000

export function createCommandReporter(
  spool: Pick<Spool, 'appendUnsynced' | 'append'>,
  log: Pick<Logger, 'error'>,
): CommandReporter {
  const onError = (err: unknown, { commandId, type }: CommandReport): false => {
    log.error({ err, commandId, type }, 'failed to store a command report')
    return false
  }

  function tryReport(report: CommandReport): boolean {
    try {
      spool.appendUnsynced(report)
      return true
    } catch (error) {
      return onError(error, report)
    }
  }

  const tryReportDurably = (report: CommandReport): Promise<boolean> =>
    spool.append(report).then(
      () => true,
      (error: unknown) => onError(error, report),
    )

  async function retry(
    attempt: typeof tryReport | typeof tryReportDurably,
    report: CommandReport,
    signal: AbortSignal,
  ) {
    while (!signal.aborted) {
      if (await attempt(report)) return true
      await delay(RETRY_MS, signal)
    }
    return false
  }

  return {
    tryReport,
    report: (report, signal) => retry(tryReport, report, signal),
    reportDurably: (report, signal) => retry(tryReportDurably, report, signal),
  }
}

/** Resolves after `ms` or when the signal aborts. */
function delay(ms: number, signal: AbortSignal): Promise<void> {
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

/** Splits output into reports of at most OUTPUT_CHUNK_BYTES. @param offset of the first byte */
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
