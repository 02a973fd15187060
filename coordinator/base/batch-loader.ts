// Loads rows by key with a limited number of queries, however often clients request them.
import { setTimeout as sleep } from 'node:timers/promises'

export type BatchLoaderOptions<Row> = {
  /** Queries that run at once after a pause. */
  burst: number
  perSecond: number
  /** Reads the rows of keys, at most `MAX_KEYS`. */
  load(keys: readonly string[]): Promise<ReadonlyMap<string, Row>>
  /** A monotonic clock in milliseconds. Default: performance.now. */
  now?: () => number
}

/** Databases limit the parameters of a query. */
const MAX_KEYS = 1000

/**
 * The returned function loads the row of a key with a query that starts after the call. Above the rate, the keys of waiting
 * calls are loaded together, so that a client with many wrong keys delays the others by one interval, and no call is refused.
 */
export function createBatchLoader<Row>(
  options: BatchLoaderOptions<Row>,
): (key: string) => Promise<Row | undefined> {
  const { burst, perSecond, load, now = () => performance.now() } = options
  const intervalMs = 1000 / perSecond
  /** The time at which all past queries are within the rate, on the clock `now`. */
  let withinRateAt = Number.NEGATIVE_INFINITY
  let waiting: { keys: Set<string>; rows: Promise<ReadonlyMap<string, Row>> } | undefined

  async function loadLater(keys: Set<string>, waitMs: number): Promise<ReadonlyMap<string, Row>> {
    await sleep(waitMs)
    waiting = undefined
    return load([...keys])
  }

  /** Returns the milliseconds until the query may run. */
  function countQuery(): number {
    withinRateAt = Math.max(withinRateAt, now()) + intervalMs
    return withinRateAt - burst * intervalMs - now()
  }

  return async (key) => {
    if (waiting === undefined || waiting.keys.size >= MAX_KEYS) {
      const waitMs = countQuery()
      const keys = new Set<string>()
      if (waitMs <= 0) return (await load([key])).get(key)
      waiting = { keys, rows: loadLater(keys, waitMs) }
    }
    waiting.keys.add(key)
    return (await waiting.rows).get(key)
  }
}
