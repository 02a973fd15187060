// The first report of a command, synchronous or detached.

import type { AgentExecRequest } from '../../../shared/api/exec.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'
import { truncateCommand } from '../../../shared/report-limits.ts'

export type StartedCommand = {
  record: NonNullable<AgentExecRequest['record']>
  command: string
  /** Working directory as given in the request; ~ when the request has none. */
  cwd: string
  /** null when the command could not be started. */
  pid: number | null
  /** Milliseconds since the epoch. */
  startedAt: number
}

/** Under zero data retention the command text does not leave the box. */
export function startedReport({ record, command, cwd, pid, startedAt }: StartedCommand): CommandReport {
  const { commandId, claimsToken, keepOutput } = record
  const text = keepOutput ? { ...truncateCommand(command), cwd } : OMITTED_TEXT
  return { type: 'command.started', commandId, claimsToken, ...text, pid, startedAt }
}

const OMITTED_TEXT = { command: null, commandTruncated: false, cwd: null } as const
