// Records of synchronous runs: two reports for a short one, written while its caller's answer is on the way.
import type { Logger } from 'pino'
import type { AgentExecRequest } from '../../../shared/api/exec.ts'
import { type CommandReport, OUTPUT_CHUNK_BYTES } from '../../../shared/api/reports.ts'
import type { Spool } from '../../reports/spool.ts'
import type { OutputTail } from '../output-tail.ts'
import { createNotes, outputReports } from './notes.ts'
import { startedReport } from './started.ts'

export type SyncEnd = Pick<
  Extract<CommandReport, { type: 'command.finished' }>,
  'status' | 'exitCode' | 'signal'
> & { finishedAt: number }

export type SyncRecording = {
  readonly commandId: string
  /** Called once. @param tails what the run printed, read before this returns */
  end(how: SyncEnd, tails: Readonly<Record<'stdout' | 'stderr', OutputTail>>): void
}

export type SyncRecorder = {
  /** null for a run that is not to be recorded, or that cannot be now. @param pid null: it could not be started */
  begin(request: AgentExecRequest, pid: number | null, startedAt: number): SyncRecording | null
  close(): void
}

/** As much of each stream rides along with the last report. */
const INLINE_BYTES = OUTPUT_CHUNK_BYTES / 2

export function createSyncRecorder(spool: Spool, log: Logger): SyncRecorder {
  const notes = createNotes(spool, log)
  const closing = new AbortController()

  /** What the last report carries; what is too long for it goes ahead of it. Without room the output is given up. */
  function inline(commandId: string, stream: 'stdout' | 'stderr', tail: OutputTail): string | undefined {
    if (tail.total() === 0) return undefined
    const bytes = tail.bytes()
    if (bytes.length <= INLINE_BYTES) return bytes.toString('base64')
    if (spool.size() > spool.roomBytes) return undefined
    for (const report of outputReports(commandId, stream, tail.total() - bytes.length, bytes)) {
      if (!notes.note(report)) break
    }
    return undefined
  }

  return {
    begin({ record, command, cwd }, pid, startedAt) {
      if (record === undefined) return null
      const { commandId, keepOutput } = record
      if (!notes.note(startedReport({ record, command, cwd: cwd || '~', pid, startedAt }))) return null
      return {
        commandId,
        end(how, { stdout, stderr }) {
          const [out, err] = keepOutput
            ? [inline(commandId, 'stdout', stdout), inline(commandId, 'stderr', stderr)]
            : []
          const finished = {
            type: 'command.finished',
            commandId,
            ...how,
            stdoutBytes: stdout.total(),
            stderrBytes: stderr.total(),
          } as const
          const report = {
            ...finished,
            ...(out !== undefined && { stdout: out }),
            ...(err !== undefined && { stderr: err }),
          }
          if (!notes.note(report)) void notes.noteAtLast(finished, closing.signal)
        },
      }
    },
    close: () => closing.abort(),
  }
}
