// Positions in the log of a run, in two files of its directory. With them a reader starts near its position, a restarted
// agent continues the numbering, and numbers stay the same after the head of the log is discarded.
//
//   checkpoints  one JSON line per checkpoint, about every 256 KiB of the log, in ascending order
//   position     the position of the follower, overwritten in place before the events before it are published
//
// The files are not synced: after a power loss the run is lost, and its log is read from the start.
import { closeSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { replaceFileSync } from '../../durable-file.ts'
import { openStateFile, readStateFile } from '../../state-file.ts'
import type { LogPosition } from './event-decoder.ts'

export const outcomeSchema = z.union([
  z.object({ status: z.literal('done') }),
  z.object({ status: z.literal('failed'), message: z.string() }),
])
export const mapperStateSchema = z.object({
  sessionId: z.string().nullable(),
  outcome: outcomeSchema.nullable(),
  // Earlier versions stored the state without these three fields.
  isContinued: z.boolean().default(false),
  hasBackgroundTasks: z.boolean().default(false),
  isLastLineOmitted: z.boolean().default(false),
  hasContent: z.boolean(),
  data: z.record(z.string(), z.unknown()),
})
const checkpointSchema = z.object({
  offset: z.int().min(0),
  seq: z.int().min(0),
  /** Time of the output at the position, in milliseconds since the epoch. */
  at: z.int(),
  notice: z.string().nullable(),
  state: mapperStateSchema,
})
export type Checkpoint = LogPosition & { readonly at: number }

/** The file has a few hundred checkpoints of at most 12 KiB. */
const MAX_BYTES = 32 * 1024 * 1024

const getCheckpointsPath = (runDir: string): string => join(runDir, 'checkpoints')
const getPositionPath = (runDir: string): string => join(runDir, 'position')

/** Omits damaged lines, and those that are not in ascending order. Empty when the file does not exist. */
export function readCheckpoints(runDir: string): Checkpoint[] {
  const checkpoints: Checkpoint[] = []
  const text = readStateFile(getCheckpointsPath(runDir), MAX_BYTES) ?? ''
  for (const line of text.split('\n').slice(0, -1)) {
    const checkpoint = parseCheckpoint(line)
    const last = checkpoints.at(-1)
    const isAscending =
      checkpoint && (last === undefined || (checkpoint.offset > last.offset && checkpoint.seq >= last.seq))
    if (isAscending) checkpoints.push(checkpoint)
  }
  return checkpoints
}

export function appendCheckpoints(runDir: string, checkpoints: readonly Checkpoint[]): void {
  const fd = openStateFile(getCheckpointsPath(runDir), { append: true })
  try {
    writeFileSync(fd, toLines(checkpoints))
  } finally {
    closeSync(fd)
  }
}

/** Removes the other checkpoints from the file. */
export const replaceCheckpoints = (runDir: string, checkpoints: readonly Checkpoint[]): void =>
  replaceFileSync(getCheckpointsPath(runDir), toLines(checkpoints))

/** Returns undefined when the position is missing or damaged. */
export function readPosition(runDir: string): Checkpoint | undefined {
  const text = readStateFile(getPositionPath(runDir), MAX_BYTES) ?? ''
  return text.includes('\n') ? parseCheckpoint(text.slice(0, text.indexOf('\n'))) : undefined
}

/**
 * Overwrites the file in place, because truncating first makes some file systems flush the file on close. Readers ignore the
 * text after the line.
 */
export function writePosition(runDir: string, position: Checkpoint): void {
  const fd = openStateFile(getPositionPath(runDir))
  try {
    writeSync(fd, toLines([position]), 0)
  } finally {
    closeSync(fd)
  }
}

const toLines = (checkpoints: readonly Checkpoint[]): string =>
  checkpoints
    .map(({ offset, seq, at, notice, state }) => `${JSON.stringify({ offset, seq, at, notice, state })}\n`)
    .join('')

function parseCheckpoint(line: string): Checkpoint | undefined {
  try {
    return checkpointSchema.safeParse(JSON.parse(line)).data
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
