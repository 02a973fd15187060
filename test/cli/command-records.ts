// Adds records to the command history of a coordinator under test, as reports of an agent do.
import { randomBytes } from 'node:crypto'
import type { CommandRow } from '../../coordinator/db/schema.ts'
import type { Command } from '../../shared/api/commands.ts'
import { OUTPUT_CHUNK_BYTES } from '../../shared/report-limits.ts'
import type { CliCoordinator } from './coordinator.ts'

type Fields = Partial<
  Pick<
    Command,
    'id' | 'mode' | 'source' | 'command' | 'cwd' | 'status' | 'exitCode' | 'signal' | 'pid' | 'outputKept'
  >
> & {
  /** ISO 8601. Default: a minute and five seconds before it finished. */
  startedAt?: string
  /** null while the command runs. Default: now. */
  finishedAt?: string | null
  actor?: Pick<CommandRow, 'actor_kind' | 'actor_user_id'>
  /** The bytes of stdout. stderr has them in reverse order. */
  output?: Buffer
  /** The offset of the first byte that is not discarded. */
  firstStoredByte?: number
}

export type CommandRecord = { id: string; append(output: Buffer, status: Command['status']): Promise<void> }

/** The records that are added later are newer. */
export function createRecordAdder({ instance, owner }: CliCoordinator, boxId: string) {
  const { db } = instance.context
  let requestedAt = Date.now()

  async function writeOutput(commandId: string, output: Buffer, firstStoredByte = 0): Promise<void> {
    await db.deleteFrom('command_output').where('command_id', '=', commandId).execute()
    for (const [stream, bytes] of [
      ['stdout', output],
      ['stderr', Buffer.from(output).reverse()],
    ] as const)
      for (let start = firstStoredByte; start < bytes.length; start += OUTPUT_CHUNK_BYTES) {
        const data = bytes.subarray(start, start + OUTPUT_CHUNK_BYTES)
        const row = { command_id: commandId, stream, start_offset: start, size: data.length, data }
        await db.insertInto('command_output').values(row).execute()
      }
  }

  return async function add(fields: Fields = {}): Promise<CommandRecord> {
    const { output = Buffer.alloc(0), firstStoredByte = 0, outputKept = true } = fields
    const id = fields.id ?? `p_${randomBytes(12).toString('hex')}`
    const finishedAt = fields.finishedAt === undefined ? new Date().toISOString() : fields.finishedAt
    const finished = finishedAt === null ? null : Date.parse(finishedAt)
    const start = outputKept ? firstStoredByte : output.length
    const row: CommandRow = {
      id,
      box_id: boxId,
      mode: fields.mode ?? 'sync',
      source: fields.source ?? 'cli',
      command: fields.command === undefined ? 'true' : fields.command,
      command_truncated: 0,
      cwd: fields.cwd === undefined ? '~' : fields.cwd,
      status: fields.status ?? 'exited',
      exit_code: fields.exitCode === undefined ? 0 : fields.exitCode,
      signal: fields.signal ?? null,
      pid: fields.pid === undefined ? 7 : fields.pid,
      requested_at: requestedAt++,
      started_at: fields.startedAt ? Date.parse(fields.startedAt) : (finished ?? Date.now()) - 65_000,
      finished_at: finished,
      ...(fields.actor ?? { actor_kind: 'user', actor_user_id: owner.userId }),
      actor_token_id: null,
      output_kept: outputKept ? 1 : 0,
      stdout_bytes: output.length,
      stdout_start: start,
      stderr_bytes: output.length,
      stderr_start: start,
      deleted_at: null,
    }
    await db.insertInto('commands').values(row).execute()
    if (outputKept) await writeOutput(id, output, firstStoredByte)
    return {
      id,
      async append(complete, status) {
        await writeOutput(id, complete)
        await db
          .updateTable('commands')
          .set({ status, exit_code: 0, stdout_bytes: complete.length, stderr_bytes: complete.length })
          .where('id', '=', id)
          .execute()
      },
    }
  }
}
