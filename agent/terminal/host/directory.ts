// The files of a terminal session that has a host.
//
//   meta.json   written before the host is started
//   started     written by the program's process just before execve; see native/runner.h
//   socket      of the host
//   recorded    the exit is in the spool of the command history
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { agentTerminalStartSchema, sessionNameSchema } from '../../../shared/api/terminal.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { replaceFile } from '../../durable-file.ts'
import { readStateFile, writeStateFile } from '../../state-file.ts'

const { command, cwd, record } = agentTerminalStartSchema.shape

const metadataSchema = z.object({
  session: sessionNameSchema,
  /** Absent: the login shell. */
  command,
  /** Working directory as given in the request. */
  cwd,
  /** How to record the session in the history. */
  record,
  /** Milliseconds since the epoch. */
  startedAt: z.int(),
})
export type SessionMetadata = z.infer<typeof metadataSchema>

const MAX_FILE_BYTES = 2 * LIMITS.jsonBodyBytes

export const writeMetadata = (dir: string, metadata: SessionMetadata): Promise<void> =>
  replaceFile(join(dir, 'meta.json'), JSON.stringify(metadata))

/** undefined when missing or invalid. */
export function readMetadata(dir: string): SessionMetadata | undefined {
  try {
    return metadataSchema.parse(JSON.parse(readStateFile(join(dir, 'meta.json'), MAX_FILE_BYTES) ?? 'null'))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}

export const writeRecordedMarker = (dir: string): void => writeStateFile(join(dir, 'recorded'), '')
export const hasRecordedMarker = (dir: string): boolean => existsSync(join(dir, 'recorded'))
