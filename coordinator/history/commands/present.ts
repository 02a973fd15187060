// Converts rows of the command history to API objects (spec §2.6).
import type { Command } from '../../../shared/api/commands.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import type { CommandRow } from './store.ts'

export const presentCommand = (row: CommandRow): Command => ({
  id: row.id,
  boxId: row.box_id,
  mode: row.mode,
  source: row.source,
  command: row.command,
  commandTruncated: row.command_truncated === 1,
  cwd: row.cwd,
  status: row.status,
  exitCode: row.exit_code,
  signal: row.signal,
  pid: row.pid,
  startedAt: toTimestamp(row.started_at),
  finishedAt: toTimestampOrNull(row.finished_at),
  actor: { kind: row.actor_kind, userId: row.actor_user_id, tokenId: row.actor_token_id },
  stdoutBytes: row.stdout_bytes,
  stderrBytes: row.stderr_bytes,
  stdoutTruncated: isTruncated(row, 'stdout'),
  stderrTruncated: isTruncated(row, 'stderr'),
  outputKept: row.output_kept === 1,
})

const isTruncated = (row: CommandRow, stream: 'stdout' | 'stderr'): boolean =>
  row.output_kept === 1 ? row[`${stream}_start`] > 0 : row[`${stream}_bytes`] > 0
