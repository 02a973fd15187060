// The open feeds: sends each what it shows of the boxes, snapshots and operations of its workspace, and their changes.

import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { WebSocket } from 'ws'
import { FEED_KINDS } from '../../shared/api/feed.ts'
import { type Clock, toTimestamp } from '../../shared/clock.ts'
import { CLOSE_CODES, getCloseCode } from '../../shared/close-codes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { listShares, rejectFull, type ShareLimits, Slots } from '../base/slots.ts'
import { listSnapshots } from '../boxes/lookups.ts'
import type { BoxService } from '../boxes/service.ts'
import type { Db } from '../db/open.ts'
import { type RowChange, subscribeToRows } from '../db/row-changes.ts'
import { type Actor, toSubject } from '../http/actor.ts'
import type { OpenRequest } from '../http/open-requests.ts'
import { getVisibility } from '../http/visibility.ts'
import { ChangeQueue } from './change-queue.ts'
import { FeedConnection } from './feed-connection.ts'
import { createChangedMessages, createItemsMessages } from './messages.ts'
import { readItems, readOperationsInProgress } from './read-items.ts'
import { type FeedItem, type FeedView, selectItems, toSnapshotItem } from './view.ts'

export type FeedsOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'error'>
  boxes: Pick<BoxService, 'listPages'>
  /** Open feeds. Default: those of LIMITS. */
  limits?: Required<ShareLimits>
  aliveMs?: number
}

export type FeedRequest = {
  actor: Actor
  live: boolean
  openRequest: OpenRequest
  /** Completes the handshake. */
  accept(): Promise<WebSocket>
}

const RETRY_MS = 5_000
const NOUN = 'open feeds'

export class Feeds {
  readonly #options: FeedsOptions
  readonly #connections = new Map<string, Set<FeedConnection>>()
  /** Those of feeds, also of feeds whose handshake is not complete. */
  readonly #slots = new Slots()
  readonly #queue = new ChangeQueue((changes) => this.#sendChanges(changes))
  readonly #unsubscribe: () => void
  #isClosing = false

  constructor(options: FeedsOptions) {
    this.#options = options
    const onChange = (change: RowChange) => {
      // A feed is added before it reads its first items.
      if (this.#connections.size > 0) this.#queue.add(change)
    }
    this.#unsubscribe = subscribeToRows(options.db, onChange, { onGap: () => this.#restart() })
  }

  /** Feeds, with those whose handshake is not complete. */
  get count(): number {
    return this.#slots.size
  }

  /**
   * Resolves when the feed has ended.
   * @throws ApiError rate_limited, control_plane_unavailable, or why the access of the credential does not allow the feed
   */
  async serve({ actor, live, openRequest, accept }: FeedRequest): Promise<void> {
    const { release, evicted } = this.#acquire(actor)
    try {
      const view = createView(actor, live)
      const changed = new AbortController()
      await openRequest.addCheck(async (current) => {
        // A contractor sees the boxes of the contractor, and one may have been given to another member.
        const isOwnView = view.visibility.ownerUserId !== null
        if (isOwnView || !isDeepStrictEqual(createView(current, live), view)) changed.abort()
      })
      const connection = new FeedConnection(await accept(), view, this.#options)
      const unlisten = [
        onAbort(evicted, () => connection.close(CLOSE_CODES.overloaded, 'too many feeds')),
        // The client begins again, with the items that it may see now.
        onAbort(changed.signal, () => connection.close(CLOSE_CODES.stopping, 'access changed')),
        onAbort(openRequest.signal, (error) => {
          if (error instanceof ApiError) connection.close(getCloseCode(error), error.code)
        }),
      ]
      this.#add(connection)
      if (this.#isClosing) this.#stop(connection)
      try {
        await connection.sendItems(this.#readAll(actor, view))
      } catch (err) {
        this.#fail(connection, err)
      }
      await connection.ended
      for (const stop of unlisten) stop()
      this.#remove(connection)
    } finally {
      release()
    }
  }

  /** Ends the feeds, and accepts no new ones. The clients connect again. */
  close(): void {
    this.#isClosing = true
    this.#unsubscribe()
    this.#queue.close()
    for (const connection of this.#listConnections()) this.#stop(connection)
  }

  #stop(connection: FeedConnection): void {
    connection.close(CLOSE_CODES.stopping, 'the coordinator is stopping')
  }

  /** The clients begin again, because changes may have been missed. */
  #restart(): void {
    for (const connection of this.#listConnections())
      connection.close(CLOSE_CODES.stopping, 'changes may have been missed')
  }

  #fail(connection: FeedConnection, err: unknown): void {
    this.#options.log.error({ err }, 'a feed could not read its items')
    connection.close(CLOSE_CODES.failed, 'the coordinator cannot read the items')
  }

  /** @returns `evicted` aborts when the feed has to end for that of another subject */
  #acquire(actor: Actor): { release: () => void; evicted: AbortSignal } {
    if (this.#isClosing) throw new ApiError('control_plane_unavailable')
    const evicted = new AbortController()
    const shares = listShares(NOUN, toSubject(actor), this.#options.limits ?? LIMITS.feeds)
    const acquisition = this.#slots.acquire(shares, { evict: () => evicted.abort() })
    if ('full' in acquisition) return rejectFull(acquisition.full, RETRY_MS)
    return { release: acquisition.release, evicted: evicted.signal }
  }

  #add(connection: FeedConnection): void {
    const { workspaceId } = connection.view.visibility
    const connections = this.#connections.get(workspaceId) ?? new Set()
    this.#connections.set(workspaceId, connections.add(connection))
  }

  #remove(connection: FeedConnection): void {
    const { workspaceId } = connection.view.visibility
    const connections = this.#connections.get(workspaceId)
    connections?.delete(connection)
    if (connections?.size === 0) this.#connections.delete(workspaceId)
  }

  #listConnections(): FeedConnection[] {
    return [...this.#connections.values()].flatMap((connections) => [...connections])
  }

  /** The lists of the API, as messages. */
  async *#readAll(actor: Actor, view: FeedView): AsyncGenerator<string> {
    const { db, boxes } = this.#options
    const { visibility, live } = view
    for await (const page of boxes.listPages(actor, { live }))
      yield* createItemsMessages(
        'boxes',
        page.map((box) => JSON.stringify(box)),
      )
    const snapshots = await listSnapshots(db, { visibility, includeTransient: false })
    yield* createItemsMessages('snapshots', selectItems(view, snapshots.map(toSnapshotItem)).shown)
    for await (const items of readOperationsInProgress(db, visibility.workspaceId))
      yield* createItemsMessages('operations', selectItems(view, items).shown)
  }

  /** Reads the changed rows once, for all feeds. */
  async #sendChanges(changes: readonly RowChange[]): Promise<void> {
    try {
      for (const kind of FEED_KINDS) {
        const ofKind = changes.filter(({ table }) => table === kind)
        const ids = ofKind.filter(({ deleted }) => deleted === undefined).map(({ id }) => id)
        const removed = ofKind.flatMap(({ id, deleted }): FeedItem[] =>
          deleted === undefined ? [] : [{ kind, id, resource: deleted, json: null, isDeletedBox: false }],
        )
        this.#distribute(removed)
        for await (const items of readItems(this.#options.db, kind, ids)) this.#distribute(items)
      }
    } catch (err) {
      // A feed without these changes would stay wrong. The clients begin again.
      for (const connection of this.#listConnections()) this.#fail(connection, err)
    }
  }

  /** @param items of one kind */
  #distribute(items: readonly FeedItem[]): void {
    const [first] = items
    if (first === undefined) return
    const at = toTimestamp(this.#options.clock.now())
    for (const [workspaceId, ofWorkspace] of Map.groupBy(items, ({ resource }) => resource.workspaceId)) {
      const messagesByView = new Map<string, Buffer[]>()
      for (const connection of this.#connections.get(workspaceId) ?? []) {
        const { view } = connection
        const key = JSON.stringify(view)
        const messages =
          messagesByView.get(key) ??
          [...createChangedMessages(first.kind, selectItems(view, ofWorkspace), at)].map((text) =>
            Buffer.from(text),
          )
        messagesByView.set(key, messages)
        connection.sendChanges(messages)
      }
    }
  }
}

const createView = (actor: Actor, live: boolean): FeedView => ({ visibility: getVisibility(actor), live })

/** Calls the listener when the signal aborts, also when it has aborted already. Returns a function that removes it. */
function onAbort(signal: AbortSignal, listener: (reason: unknown) => void): () => void {
  const onEvent = () => listener(signal.reason)
  signal.addEventListener('abort', onEvent, { once: true })
  if (signal.aborted) onEvent()
  return () => signal.removeEventListener('abort', onEvent)
}
