// Reports synchronous commands to the command history. A short command takes two reports.
import type { Logger } from 'pino'
import type { AgentExecRequest } from '../../../shared/api/exec.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'
import { OUTPUT_CHUNK_BYTES } from '../../../shared/report-limits.ts'
import type { Spool } from '../../reports/spool.ts'
import type { OutputTail } from '../output-tail.ts'
import { createCommandReporter, outputReports } from './command-reporter.ts'
import { startedReport } from './started-report.ts'

type FinishedReport = Extract<CommandReport, { type: 'command.finished' }>
export type SyncExit = Pick<FinishedReport, 'status' | 'exitCode' | 'signal'> & { finishedAt: number }

export type SyncRecording = {
  readonly commandId: string
  /**
   * Call once. Resolves to true when the spool has the exit, and to false after close().
   * @param tails the output; read before the call returns
   */
  finish(exit: SyncExit, tails: Readonly<Record<'stdout' | 'stderr', OutputTail>>): Promise<boolean>
}

export type SyncRecorder = {
  /**
   * null when the command is not to be recorded, or the spool cannot store it now.
   * @param pid null: the command could not be started
   */
  start(request: AgentExecRequest, pid: number | null, startedAt: number): SyncRecording | null
  /** Resolves when the spool has the exits of all commands recorded so far, or after close(). */
  waitUntilIdle(): Promise<void>
  close(): void
}

/** Output up to this size per stream is part of the command.finished report. */
const INLINE_BYTES = OUTPUT_CHUNK_BYTES / 2

export function createSyncRecorder(spool: Spool, log: Logger): SyncRecorder {
  const reporter = createCommandReporter(spool, log)
  const closeController = new AbortController()
  const active = new Set<Promise<unknown>>()

  /**
   * Returns the output as base64 for the command.finished report. Longer output is sent before that report, in reports of
   * its own. When the spool is above its high-water mark, longer output is discarded.
   */
  function inlineOutput(
    commandId: string,
    stream: 'stdout' | 'stderr',
    tail: OutputTail,
  ): string | undefined {
    if (tail.total() === 0) return undefined
    const bytes = tail.bytes()
    if (bytes.length <= INLINE_BYTES) return bytes.toString('base64')
    if (spool.pendingBytes() > spool.highWaterMark) return undefined
    for (const report of outputReports(commandId, stream, tail.total() - bytes.length, bytes)) {
      if (!reporter.tryReport(report)) break
    }
    return undefined
  }

  return {
    start({ record, command, cwd }, pid, startedAt) {
      if (record === undefined) return null
      const { commandId, keepOutput } = record
      if (!reporter.tryReport(startedReport({ record, command, cwd: cwd || '~', pid, startedAt })))
        return null
      const { promise: reported, resolve: setReported } = Promise.withResolvers<unknown>()
      active.add(reported)
      void reported.then(() => active.delete(reported))
      return {
        commandId,
        async finish(exit, { stdout, stderr }) {
          const [out, err] = keepOutput
            ? [inlineOutput(commandId, 'stdout', stdout), inlineOutput(commandId, 'stderr', stderr)]
            : []
          const finished = {
            type: 'command.finished',
            commandId,
            ...exit,
            stdoutBytes: stdout.total(),
            stderrBytes: stderr.total(),
          } as const
          const report = {
            ...finished,
            ...(out !== undefined && { stdout: out }),
            ...(err !== undefined && { stderr: err }),
          }
          // On a full disk only the exit is retried, without the output.
          const stored = reporter.tryReport(report) || reporter.report(finished, closeController.signal)
          setReported(stored)
          return stored
        },
      }
    },
    async waitUntilIdle() {
      await Promise.all(active)
    },
    close: () => closeController.abort(),
  }
}
