// The processes and ports of a box at a moment (spec §4.3, §8): the nearest snapshot.
import { type ProcsAt, toListeningPort } from '../../../shared/api/process-snapshots.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { ProcessSnapshot } from '../../../shared/process-delta.ts'
import type { WarnOfBox } from '../../base/log/box-warnings.ts'
import type { Db } from '../../db/open.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { type Chunk, decodeChunk, getChunkStart, readSnapshot } from './chunk.ts'
import { listChunks, listNearestChunks } from './store.ts'

/** Spec §8. */
const TOLERANCE_MS = 5 * 60 * 1000

export type ProcsAtService = {
  /**
   * Returns the snapshot nearest to `t` (milliseconds since the epoch), the earlier one of two. Throws not_found for a box that
   * the actor may not see, and when there is no snapshot within five minutes.
   */
  get(actor: Actor, boxId: string, t: number): Promise<ProcsAt>
}

export function createProcsAtService(options: {
  db: Db
  boxes: Pick<BoxFinder, 'find'>
  warn: WarnOfBox
}): ProcsAtService {
  const { db, boxes, warn } = options

  /** Returns undefined, and logs the problem, when stored data is damaged. */
  function tryDecode<T>(boxId: string, start: number, decode: () => T): T | undefined {
    try {
      return decode()
    } catch (err) {
      warn(boxId, 'stored process snapshots are damaged', { err, start })
      return undefined
    }
  }

  type StoredChunks = Awaited<ReturnType<typeof listChunks>>

  function decodeAll(boxId: string, stored: StoredChunks): Chunk[] {
    return stored.flatMap(
      ({ start, data }) => tryDecode(boxId, start, () => decodeChunk(start * 1000, data)) ?? [],
    )
  }

  async function createNotFoundError(boxId: string, t: number): Promise<ApiError> {
    const chunks = decodeAll(boxId, await listNearestChunks(db, boxId, toChunkStart(t)))
    const times = chunks.flatMap(({ times }) => times)
    const before = times.filter((at) => at < t)
    const after = times.filter((at) => at > t)
    const nearest = [
      ...(before.length > 0 ? [Math.max(...before)] : []),
      ...(after.length > 0 ? [Math.min(...after)] : []),
    ]
    const message = `There is no process snapshot within five minutes of ${toTimestamp(t)}.`
    if (nearest.length === 0)
      return new ApiError('not_found', `${message} None is stored; a running box takes one every minute.`)
    return new ApiError('not_found', `${message} The nearest: ${nearest.map(toTimestamp).join(' and ')}.`)
  }

  return {
    async get(actor, boxId, t) {
      await boxes.find(actor, boxId)
      const stored = await listChunks(
        db,
        boxId,
        toChunkStart(t - TOLERANCE_MS),
        toChunkStart(t + TOLERANCE_MS),
      )
      let nearest: { chunk: Chunk; index: number; at: number; distance: number } | undefined
      for (const chunk of decodeAll(boxId, stored))
        for (const [index, at] of chunk.times.entries()) {
          const distance = Math.abs(at - t)
          if (distance > TOLERANCE_MS) continue
          const isNearer =
            nearest === undefined ||
            distance < nearest.distance ||
            (distance === nearest.distance && at < nearest.at)
          if (isNearer) nearest = { chunk, index, at, distance }
        }
      const found =
        nearest &&
        tryDecode(boxId, toChunkStart(nearest.at), () => readSnapshot(nearest.chunk, nearest.index))
      if (nearest === undefined || found === undefined) throw await createNotFoundError(boxId, t)
      return presentSnapshot(nearest.at, found)
    },
  }
}

/** Epoch seconds. */
const toChunkStart = (ms: number): number => getChunkStart(ms) / 1000

function presentSnapshot(at: number, { processes, ports, total }: ProcessSnapshot): ProcsAt {
  return {
    v: 1,
    at: toTimestamp(at),
    procs: [...processes.values()]
      .map(({ process: [pid, ppid, start, user, name, command], cpuTenths, rssKiB }) => ({
        pid,
        ppid,
        user,
        name,
        command,
        cpuPct: cpuTenths / 10,
        memBytes: rssKiB * 1024,
        startedAt: toTimestamp(start),
      }))
      .sort((a, b) => a.pid - b.pid),
    ports: ports.map(toListeningPort).sort((a, b) => a.port - b.port),
    total,
  }
}
