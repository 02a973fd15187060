// Counts the open connections of users to boxes, at all coordinators: each knows those to the boxes whose agents it has.
import type { Logger } from 'pino'
import { z } from 'zod'
import type { Peers } from '../replicas/peers.ts'

/** By the user who opened them. null: keys without a user. */
export type UserCounts = ReadonlyMap<string | null, number>
/** By box. A box without connections may be absent. */
export type CountSessions = (boxIds: readonly string[]) => Promise<ReadonlyMap<string, UserCounts>>

export type CountSessionsOptions = {
  log: Pick<Logger, 'warn'>
  /** The connections to a box at this coordinator. */
  countByUser(boxId: string): UserCounts
  /** null: no other coordinator uses the database. */
  peers: Pick<Peers, 'handle' | 'callAll'> | null
}

const OPERATION = 'team.sessions'
const TIMEOUT_MS = 2_000

const boxIdsSchema = z.array(z.string())
/** The boxes with connections. */
const countsSchema = z.array(z.tuple([z.string(), z.array(z.tuple([z.string().nullable(), z.number()]))]))

export function createCountSessions({ log, countByUser, peers }: CountSessionsOptions): CountSessions {
  const countHere = (boxIds: readonly string[]) =>
    boxIds.map((id) => [id, countByUser(id)] as const).filter(([, counts]) => counts.size > 0)
  peers?.handle(OPERATION, boxIdsSchema, async (boxIds) =>
    countHere(boxIds).map(([id, counts]) => [id, [...counts]]),
  )

  return async (boxIds) => {
    const sums = new Map(countHere(boxIds))
    if (peers === null || boxIds.length === 0) return sums
    const options = { schema: countsSchema, timeoutMs: TIMEOUT_MS }
    for (const outcome of await peers.callAll(OPERATION, boxIds, options))
      if (outcome.status === 'rejected')
        log.warn(
          { err: outcome.reason },
          'the team status has no sessions of a coordinator that does not respond',
        )
      else for (const [id, counts] of outcome.value) sums.set(id, addCounts(sums.get(id), counts))
    return sums
  }
}

/** The tunnel of a box may have moved, so that two coordinators have connections to it. */
function addCounts(first: UserCounts = new Map(), second: Iterable<[string | null, number]>): UserCounts {
  const sums = new Map(first)
  for (const [userId, count] of second) sums.set(userId, (sums.get(userId) ?? 0) + count)
  return sums
}
