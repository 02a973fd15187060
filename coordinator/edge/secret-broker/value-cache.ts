// The values of the secrets of a host, with the matcher that finds them in responses. Requests with the same secrets share them:
// the creation takes up to 70 ms of the main thread and 11 MB, which a program of a box must not cause with each request.
import type { Clock } from '../../../shared/clock.ts'
import type { SecretValue } from '../../base/sealing/secret-value.ts'
import { createTokenBuckets } from '../../base/token-buckets.ts'
import type { BrokeredHost, BrokeredSecret } from '../../secrets/types.ts'
import { BrokerError } from './broker-error.ts'
import { listSentTexts } from './encode-value.ts'
import { Matcher } from './scrub/matcher.ts'
import { createNeedles } from './scrub/needles.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** Of the values of all secrets with a host, in all forms: a value of 16 KiB of any text, or about 128 KiB of letters and digits. */
export const MAX_NEEDLE_BYTES = MiB
/** Bytes of the entries of a workspace. Entries in use are not evicted. */
export const MAX_WORKSPACE_BYTES = 24 * MiB
/** Bytes of the entries of all workspaces that no request uses. */
const MAX_UNUSED_BYTES = 32 * MiB
/** An entry that no request has used for this time is deleted, so that values do not stay in memory. */
export const MAX_UNUSED_MS = 10 * 60_000
const CHECK_INTERVAL_MS = 60_000
/** Bytes of entries that are created for a workspace: at most 7 ms of the main thread per second, after the first 24 MiB. */
const CREATION = { capacity: 24 * MiB, perSecond: MiB }
/** What an entry occupies beside its key, values and matcher. */
const ENTRY_BYTES = KiB

export type OpenedSecret = Pick<BrokeredSecret, 'secretId' | 'name' | 'placeholder' | 'in'> & {
  /** null: the stored value cannot be decrypted. */
  value: SecretValue | null
}

export type OpenedSecrets = {
  secrets: readonly OpenedSecret[]
  /** null: no value is long enough to be masked. */
  matcher: Matcher | null
  /** Must be called when the response is complete. Further calls have no effect. */
  release(): void
}

type Values = {
  values: ReadonlyMap<string, SecretValue | null>
  matcher: Matcher | null
  isTooLarge: boolean
  bytes: number
}
type Entry = Values & { key: string; workspaceId: string; users: number; usedAt: number }

export class ValueCache {
  readonly #clock: Clock
  readonly #creation
  readonly #timer
  /** By the ids, versions and locations of the secrets, so that a new value has a new entry. The least recently used is the first. */
  readonly #entries = new Map<string, Entry>()
  readonly #bytesByWorkspace = new Map<string, number>()
  #unusedBytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#creation = createTokenBuckets(clock, CREATION)
    this.#timer = setInterval(() => this.deleteUnused(), CHECK_INTERVAL_MS).unref()
  }

  get size(): number {
    return this.#entries.size
  }

  /** @throws BrokerError when the values are too large, or the workspace uses too many different ones */
  acquire({ workspaceId, secrets }: Pick<BrokeredHost, 'workspaceId' | 'secrets'>): OpenedSecrets {
    const versions = secrets.map(
      ({ secretId, version, in: locations }) => `${secretId} ${version} ${locations}`,
    )
    const key = [workspaceId, ...versions.sort()].join()
    const entry = this.#entries.get(key) ?? this.#create(key, workspaceId, secrets)
    if (entry.isTooLarge)
      throw new BrokerError(
        'headers_too_large',
        'The secrets that are mounted on the box for this host are too large to be found in responses. Unmount some of them, or use shorter values.',
      )
    this.#changeUsers(entry, 1)
    let isReleased = false
    return {
      secrets: secrets.map(({ secretId, name, placeholder, in: locations }) => ({
        secretId,
        name,
        placeholder,
        in: locations,
        value: entry.values.get(secretId) ?? null,
      })),
      matcher: entry.matcher,
      release: () => {
        if (isReleased) return
        isReleased = true
        this.#changeUsers(entry, -1)
        if (this.#unusedBytes > MAX_UNUSED_BYTES)
          this.#evict(this.#unusedBytes - MAX_UNUSED_BYTES, () => true)
      },
    }
  }

  deleteUnused(): void {
    const now = this.#clock.now()
    for (const entry of this.#entries.values())
      if (entry.users === 0 && now - entry.usedAt >= MAX_UNUSED_MS) this.#delete(entry)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #create(key: string, workspaceId: string, secrets: readonly BrokeredSecret[]): Entry {
    if (this.#creation.spend(workspaceId, 0) > 0) throw createTooManyValuesError()
    const created = openValues(secrets)
    this.#creation.spend(workspaceId, key.length + (created.isTooLarge ? MAX_NEEDLE_BYTES : created.bytes))
    const entry = { key, workspaceId, users: 0, usedAt: this.#clock.now(), ...created }
    entry.bytes += key.length
    const excess = this.#countBytes(workspaceId) + entry.bytes - MAX_WORKSPACE_BYTES
    if (this.#evict(excess, (other) => other.workspaceId === workspaceId) > 0)
      throw createTooManyValuesError()
    this.#entries.set(key, entry)
    this.#addBytes(entry, entry.bytes)
    return entry
  }

  #countBytes(workspaceId: string): number {
    return this.#bytesByWorkspace.get(workspaceId) ?? 0
  }

  #addBytes({ workspaceId, users }: Entry, bytes: number): void {
    const sum = this.#countBytes(workspaceId) + bytes
    if (sum > 0) this.#bytesByWorkspace.set(workspaceId, sum)
    else this.#bytesByWorkspace.delete(workspaceId)
    if (users === 0) this.#unusedBytes += bytes
  }

  /** Makes the entry the most recently used one. */
  #changeUsers(entry: Entry, change: 1 | -1): void {
    if (entry.users === 0) this.#unusedBytes -= entry.bytes
    entry.users += change
    if (entry.users === 0) this.#unusedBytes += entry.bytes
    entry.usedAt = this.#clock.now()
    this.#entries.delete(entry.key)
    this.#entries.set(entry.key, entry)
  }

  /** Deletes unused entries, the least recently used first. Returns the number of bytes that could not be freed, or 0. */
  #evict(bytes: number, isEvictable: (entry: Entry) => boolean): number {
    let left = bytes
    for (const entry of this.#entries.values()) {
      if (left <= 0) break
      if (entry.users > 0 || !isEvictable(entry)) continue
      this.#delete(entry)
      left -= entry.bytes
    }
    return Math.max(0, left)
  }

  #delete(entry: Entry): void {
    this.#entries.delete(entry.key)
    this.#addBytes(entry, -entry.bytes)
  }
}

function openValues(secrets: readonly BrokeredSecret[]): Values {
  const values = new Map<string, SecretValue | null>()
  function* openAll(): Generator<string> {
    for (const { secretId, open, in: locations } of secrets) {
      const value = open()
      values.set(secretId, value)
      if (value !== null) yield* listSentTexts(value.reveal(), locations)
    }
  }
  const needles = createNeedles(openAll(), MAX_NEEDLE_BYTES)
  if (needles === null) return { values: new Map(), matcher: null, isTooLarge: true, bytes: ENTRY_BYTES }
  const matcher = needles.length === 0 ? null : new Matcher(needles)
  const valueBytes = [...values.values()].reduce((sum, value) => sum + (value?.reveal().length ?? 0), 0)
  return { values, matcher, isTooLarge: false, bytes: ENTRY_BYTES + valueBytes + (matcher?.size ?? 0) }
}

const createTooManyValuesError = (): BrokerError =>
  new BrokerError(
    'too_many_requests',
    'The boxes of the workspace use too many different values of secrets in a short time, or at once. Try again later.',
  )
