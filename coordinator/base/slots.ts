// Limits how much of something is open at the same time: connections, feeds, requests. Each use holds one slot of each subject
// that it belongs to, such as a key, its user and its workspace. One subject cannot take what all share.
import { rejectLimited } from './rate-limiter.ts'

/** One of `limit` concurrent uses of a subject. */
export type Slot = {
  key: string
  limit: number
  /** The subject of a message: 'This API key'. */
  holder: string
  /** What the limit counts, in the plural. */
  noun: string
}

/** How a use can be ended for that of another subject. */
export type Eviction = {
  /** Ends the use. Its slots have been released. */
  evict(): void
  /** Whether the use does nothing now: it is ended before others of the same subject. Default: false. */
  isIdle?(): boolean
}

export type Acquisition =
  | {
      /** Releases the slots. Idempotent. */
      release: () => void
    }
  | {
      /** The slot whose limit is reached. */
      full: Slot
    }

type Use = { slots: readonly Slot[]; eviction: Eviction | undefined }

/** A subject without acquired slots uses no memory. */
export class Slots {
  /** By the keys of slots, the oldest first. */
  readonly #uses = new Map<string, Set<Use>>()
  #size = 0

  /** Number of uses. */
  get size(): number {
    return this.#size
  }

  count(key: string): number {
    return this.#uses.get(key)?.size ?? 0
  }

  /**
   * Acquires all slots, or none when one of them is full.
   * @param slots the narrowest subject first
   * @param eviction given when all uses of these subjects can be evicted. A full slot then takes the place of another use: of that
   *   subject below it which has the most, when it has at least two more than the subject of this use. So those with few uses
   *   always get one, and two subjects do not evict each other in turn.
   */
  acquire(slots: readonly Slot[], eviction?: Eviction): Acquisition {
    const index = slots.findIndex(({ key, limit }) => this.count(key) >= limit)
    const full = slots[index]
    if (full !== undefined) {
      const victim = eviction && this.#findVictim(full.key, index, slots[index - 1]?.key)
      if (victim === undefined) return { full }
      // A user may have uses in several workspaces: then the workspace of this use can still be full.
      this.#evict(victim)
      const next = slots.find(({ key, limit }) => this.count(key) >= limit)
      if (next !== undefined) return { full: next }
    }
    const use: Use = { slots, eviction }
    for (const { key } of slots) this.#uses.set(key, (this.#uses.get(key) ?? new Set()).add(use))
    this.#size += 1
    return { release: () => this.#release(use) }
  }

  /** Evicts a use of the slot: of that subject below it which has the most. Returns false when no use can be evicted. */
  evictOne(key: string): boolean {
    const [first] = this.#uses.get(key) ?? []
    const index = first?.slots.findIndex((slot) => slot.key === key) ?? -1
    const victim = index < 0 ? undefined : this.#findVictim(key, index, undefined)
    if (victim !== undefined) this.#evict(victim)
    return victim !== undefined
  }

  /** @param index of the slot in the slots of its uses */
  #findVictim(key: string, index: number, ownKey: string | undefined): Use | undefined {
    if (index === 0) return undefined
    let uses = [...(this.#uses.get(key) ?? [])]
    for (let level = index - 1; level >= 0; level -= 1) {
      const groups = Map.groupBy(uses, ({ slots }) => slots[level]?.key)
      const largest = [...groups.values()].reduce((a, b) => (b.length > a.length ? b : a), [])
      const isFairer = largest.length > 1 + (ownKey === undefined ? 0 : this.count(ownKey))
      if (level === index - 1 && !isFairer) return undefined
      uses = largest
    }
    return uses.find(({ eviction }) => eviction?.isIdle?.()) ?? uses[0]
  }

  #evict(use: Use): void {
    this.#release(use)
    use.eviction?.evict()
  }

  #release(use: Use): void {
    const [first] = use.slots
    if (first === undefined || !this.#uses.get(first.key)?.has(use)) return
    this.#size -= 1
    for (const { key } of use.slots) {
      const uses = this.#uses.get(key)
      uses?.delete(use)
      if (uses?.size === 0) this.#uses.delete(key)
    }
  }
}

/** Who uses something: a key, a session or a ticket, or a box. */
export type Subject = {
  credentialId: string
  /** null: there is no user. Each such credential then has the limit of a user. */
  userId: string | null
  workspaceId: string
  /** Default: credential. */
  kind?: 'credential' | 'box'
}

export type ShareLimits = {
  perCredential: number
  perUser: number
  perWorkspace: number
  /** Of all workspaces. Default: without a limit. */
  total?: number
}

/**
 * The slots of a use of something that all workspaces share.
 * @param noun what is counted, in the plural. It also distinguishes the slots from those of other things.
 */
export function listShares(noun: string, subject: Subject, limits: ShareLimits): Slot[] {
  const { credentialId, userId, workspaceId, kind = 'credential' } = subject
  const create = (key: string, limit: number, name: string): Slot => ({
    key: `${noun} ${key}`,
    limit,
    holder: name,
    noun,
  })
  const holder = kind === 'box' ? 'This box' : 'This API key or session'
  return [
    create(`credential ${credentialId}`, limits.perCredential, holder),
    create(`user ${userId ?? credentialId}`, limits.perUser, userId === null ? holder : 'Your user'),
    create(`workspace ${workspaceId}`, limits.perWorkspace, 'The workspace'),
    ...(limits.total === undefined ? [] : [create('total', limits.total, 'This coordinator')]),
  ]
}

/** @throws ApiError rate_limited, with the time after which a client may try again */
export const rejectFull = ({ holder, limit, noun }: Slot, retryMs: number): never =>
  rejectLimited(retryMs, `${holder} has reached the limit of ${limit} ${noun}.`, 'Close one, or try again')
