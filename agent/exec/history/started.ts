// The first report on a command, synchronous or detached.
import { keptText } from '../../../shared/api/commands.ts'
import type { AgentExecRequest } from '../../../shared/api/exec.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'

export type Begun = {
  record: NonNullable<AgentExecRequest['record']>
  command: string
  /** The one sent, or ~. */
  cwd: string
  /** null when it could not be started. */
  pid: number | null
  /** Milliseconds since the epoch. */
  startedAt: number
}

/** Under zero data retention the text does not leave the box. */
export function startedReport({ record, command, cwd, pid, startedAt }: Begun): CommandReport {
  const { commandId, receipt, keepOutput } = record
  const text = keepOutput ? { ...keptText(command), cwd } : NOT_KEPT
  return { type: 'command.started', commandId, receipt, ...text, pid, startedAt }
}

const NOT_KEPT = { command: null, commandTruncated: false, cwd: null } as const
