// Stores the process snapshots that boxes report. Boxes are not trusted: a report that does not fit is dropped.
import {
  type ProcessDelta,
  type ProcessSnapshotReport,
  processDeltaSchema,
} from '../../../shared/api/process-snapshots.ts'
import { BoundedJsonError, parseBoundedJson } from '../../../shared/bounded-json.ts'
import type { Clock } from '../../../shared/clock.ts'
import { MAX_SNAPSHOT_PROCESSES } from '../../../shared/report-limits.ts'
import { validationMessage } from '../../../shared/validation-message.ts'
import type { WarnOfBox } from '../../base/log/box-warnings.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { hasZeroDataRetention } from '../../db/zero-data-retention.ts'
import { isStorableTime } from '../metrics/retention.ts'
import {
  appendSnapshot,
  type Chunk,
  canAppend,
  decodeChunk,
  emptyChunk,
  encodeChunk,
  getChunkStart,
  readLast,
  withoutCommands,
} from './chunk.ts'
import { findChunk, findChunkBefore, writeChunk } from './store.ts'

export type IngestOptions = {
  clock: Clock
  warn: WarnOfBox
}

/** A process has 7 tokens, its removal 1, its usage 4; a port has 4. */
const MAX_DELTA_TOKENS = 16 * MAX_SNAPSHOT_PROCESSES + 100

/** The current chunk is written every minute, and once more when a later one starts. */
const LEVEL = { current: 1, closed: 9 } as const

/** Chunks that one batch of reports may change. An agent that was disconnected sends less than an hour of snapshots in a batch. */
const MAX_BATCH_CHUNKS = 3
/**
 * Bytes of chunks, before compression, that are written again because a snapshot is added. Three days of snapshots of 150
 * processes, sent at once, are 60 MiB.
 */
const REWRITTEN_BYTES = { capacity: 96 * 1024 * 1024, perSecond: 1024 * 1024 }

export function createSnapshotIngest({ clock, warn }: IngestOptions) {
  const rewrittenBytes = createTokenBuckets(clock, REWRITTEN_BYTES)

  const drop = (boxId: string, problem: string) =>
    warn(boxId, 'dropped a process snapshot of a box', { problem })

  /** Groups the snapshots by the start of their chunk. Drops those that cannot be stored. */
  function groupByChunk(boxId: string, snapshots: readonly ProcessSnapshotReport[]) {
    const groups = new Map<number, ProcessSnapshotReport[]>()
    for (const snapshot of snapshots) {
      if (!isStorableTime(snapshot.at, clock.now())) {
        drop(boxId, 'its time is in the future, or too old')
        continue
      }
      const start = getChunkStart(snapshot.at)
      const group = groups.get(start)
      if (group !== undefined) group.push(snapshot)
      else if (groups.size < MAX_BATCH_CHUNKS) groups.set(start, [snapshot])
      else drop(boxId, 'the batch has snapshots of too many hours')
    }
    return groups
  }

  /** A damaged chunk is replaced: its snapshots are lost. */
  function decode(
    boxId: string,
    start: number,
    data: Uint8Array | undefined,
    { needsLast }: { needsLast: boolean },
  ): Chunk {
    if (data === undefined) return emptyChunk(start)
    try {
      const chunk = decodeChunk(start, data)
      if (needsLast) readLast(chunk)
      return chunk
    } catch (err) {
      warn(boxId, 'stored process snapshots are damaged; replacing them', { err, start })
      return emptyChunk(start)
    }
  }

  function parseDelta(boxId: string, text: string): ProcessDelta | undefined {
    try {
      const parsed = processDeltaSchema.safeParse(parseBoundedJson(text, MAX_DELTA_TOKENS), {
        reportInput: true,
      })
      if (parsed.success) return parsed.data
      drop(boxId, validationMessage(parsed.error.issues, 'delta'))
    } catch (error) {
      if (!(error instanceof BoundedJsonError)) throw error
      drop(boxId, `it ${error.message}`)
    }
    return undefined
  }

  /** Adds the snapshots that fit. Returns whether the chunk changed. */
  function addSnapshots(
    boxId: string,
    chunk: Chunk,
    snapshots: readonly ProcessSnapshotReport[],
    keepCommands: boolean,
  ) {
    const before = chunk.times.length
    for (const { at, previousAt, delta: text } of snapshots) {
      if (!canAppend(chunk, { at, previousAt })) continue
      const delta = parseDelta(boxId, text)
      if (delta === undefined) continue
      const stored = keepCommands ? delta : { ...delta, added: withoutCommands(delta.added) }
      if (!appendSnapshot(chunk, { at, previousAt, delta: stored }))
        drop(boxId, 'those of these hours are too large')
    }
    return chunk.times.length > before
  }

  /** When a new chunk begins, compresses the previous one again, at a higher level. */
  async function closeChunkBefore(trx: Trx, boxId: string, start: number): Promise<void> {
    const row = await findChunkBefore(trx, boxId, start / 1000)
    if (row === undefined) return
    const chunk = decode(boxId, row.start * 1000, row.data, { needsLast: false })
    rewrittenBytes.spend(boxId, chunk.bytes)
    await writeChunk(trx, { ...row, box_id: boxId, data: encodeChunk(chunk, LEVEL.closed) })
  }

  return async function apply(
    trx: Trx,
    box: BoxRow,
    snapshots: readonly ProcessSnapshotReport[],
  ): Promise<void> {
    if (rewrittenBytes.spend(box.id, 0) > 0) return drop(box.id, 'the box has sent too many')
    const keepCommands = !(await hasZeroDataRetention(trx, box.workspace_id))
    for (const [start, group] of groupByChunk(box.id, snapshots)) {
      const row = await findChunk(trx, box.id, start / 1000)
      const needsLast = group.some(({ previousAt }) => previousAt === null)
      const chunk = decode(box.id, start, row?.data, { needsLast })
      const hasChanged = addSnapshots(box.id, chunk, group, keepCommands)
      rewrittenBytes.spend(box.id, chunk.bytes)
      if (!hasChanged) continue
      const data = encodeChunk(chunk, LEVEL.current)
      await writeChunk(trx, { box_id: box.id, start: start / 1000, data })
      if (row === undefined) await closeChunkBefore(trx, box.id, start)
    }
  }
}
