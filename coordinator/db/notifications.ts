// Notifies subscribers of what a transaction has changed, after its commit: those of this coordinator by a call, and those of the
// other coordinators that share a Postgres database by one NOTIFY. A feature does not know whether there are others.
import type { CompiledQuery } from 'kysely'
import {
  getHub,
  type Message,
  type Origin,
  type OtherCoordinators,
  type Subscriber,
} from './notification-hub.ts'
import type { Db } from './open.ts'
import { afterCommit, notifiesLocally, setLastCallback, type Trx } from './transaction.ts'

export type Topic<T> = {
  readonly name: string
  /** Whether transactions with `notifiesLocally` may use the topic: other coordinators do not get these notifications. */
  readonly mayBeLocal: boolean
  /** Never set: the type of the payload. */
  readonly payload?: T
}

export type TopicOptions = { mayBeLocal?: boolean }

const names = new Set<string>()
const outgoing = new WeakMap<Trx, Map<string, Message>>()

/** Declares a topic, once, as a constant of a file. The payload is small JSON: ids, and what has been deleted. */
export function defineTopic<T>(name: string, { mayBeLocal = false }: TopicOptions = {}): Topic<T> {
  if (names.has(name)) throw new Error(`two topics have the name ${name}`)
  names.add(name)
  return { name, mayBeLocal }
}

/**
 * Notifies the subscribers after the outermost transaction commits: those of this coordinator at once and in the order of the
 * calls. Does not notify them after a rollback.
 */
export function notify<T>(trx: Trx, topic: Topic<T>, payload: T): void {
  const { subscribers, others } = getHub(trx)
  const isLocal = notifiesLocally(trx)
  if (isLocal && !topic.mayBeLocal)
    throw new Error(`a transaction that notifies locally must not notify of ${topic.name}`)
  afterCommit(trx, () => {
    for (const { listener } of subscribers.get(topic.name) ?? []) listener(payload, 'here')
  })
  if (others !== null && !isLocal) addMessage(trx, others, { topic: topic.name, payload })
}

/** Equal messages are sent once, at the position of the last one. */
function addMessage(trx: Trx, others: OtherCoordinators, message: Message): void {
  let messages = outgoing.get(trx)
  if (messages === undefined) {
    const added = new Map<string, Message>()
    messages = added
    outgoing.set(trx, added)
    setLastCallback(trx, () => others.send(trx, [...added.values()]))
  }
  const key = JSON.stringify(message)
  messages.delete(key)
  messages.set(key, message)
}

export type SubscribeOptions = {
  /**
   * Called when notifications of other coordinators may have been lost, or were too many for one message: the subscriber must
   * read again what it derives from them. Must not throw.
   */
  onGap(): void
}

/**
 * A read that starts after the call has all changes of this coordinator that `listener` does not get.
 * @param listener is called synchronously after a commit of this coordinator, and must not throw
 * @returns a function that ends the subscription
 */
export function subscribe<T>(
  db: Db,
  topic: Topic<T>,
  listener: (payload: T, origin: Origin) => void,
  { onGap }: SubscribeOptions,
): () => void {
  const { subscribers } = getHub(db)
  const subscriber: Subscriber = { listener: listener as Subscriber['listener'], onGap }
  const ofTopic = subscribers.get(topic.name) ?? new Set()
  subscribers.set(topic.name, ofTopic.add(subscriber))
  return () => void ofTopic.delete(subscriber)
}

/**
 * Closes the connections of all queries, which fail: for a coordinator that must not do anything any more. Without it, queries on
 * connections through a broken network would wait for minutes. The next queries use new connections.
 */
export const closeConnections = (db: Db): void => getHub(db).others?.closeConnections()

/**
 * Runs a statement that must not wait behind the queries of all others, as those of a thousand agents that connect at once. On a
 * shared database it has the connection for notifications.
 */
export async function executeAtOnce(db: Db, statement: CompiledQuery): Promise<void> {
  const { others } = getHub(db)
  await (others === null ? db.executeQuery(statement) : others.execute(statement))
}

/**
 * Until when this coordinator has received the notifications of the others, as a time of performance.now(). Infinity: it shares
 * its database with no other coordinator.
 */
export const getReceivedUntil = (db: Db): number =>
  getHub(db).others?.receivedUntil ?? Number.POSITIVE_INFINITY
