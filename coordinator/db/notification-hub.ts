// The subscribers of each database, and its other coordinators. notifications.ts is the interface for features.
import type { CompiledQuery, QueryExecutorProvider } from 'kysely'

/** `here`: this coordinator has committed the change. */
export type Origin = 'here' | 'elsewhere'

export type Subscriber = { listener(payload: unknown, origin: Origin): void; onGap(): void }

export type Message = { topic: string; payload: unknown }

/** The other coordinators of a database. */
export type OtherCoordinators = {
  /** Sends the messages with the commit of the transaction. */
  send(trx: QueryExecutorProvider, messages: readonly Message[]): Promise<void>
  /** Every notification of a transaction that committed before this time of performance.now() has arrived. */
  readonly receivedUntil: number
  /** Runs a statement on the connection for notifications, for which no query waits. Rejects while it is lost. */
  execute(statement: CompiledQuery): Promise<void>
  /** Closes the connections of all queries, which fail. */
  closeConnections(): void
}

export type Hub = {
  /** By the name of the topic. */
  subscribers: Map<string, Set<Subscriber>>
  /** null: this coordinator uses the database alone. */
  others: OtherCoordinators | null
}

/** A database and its transactions have one adapter. */
const hubs = new WeakMap<object, Hub>()

export function getHub(db: QueryExecutorProvider): Hub {
  const { adapter } = db.getExecutor()
  const hub = hubs.get(adapter) ?? { subscribers: new Map(), others: null }
  hubs.set(adapter, hub)
  return hub
}

/** What notifies the subscribers of changes of other coordinators. */
export type Receiver = {
  /** @param onError of a subscriber. The other subscribers are notified */
  receive(messages: readonly Message[], onError: (error: unknown) => void): void
  /** @param topics undefined: all */
  reportGap(topics: readonly string[] | undefined, onError: (error: unknown) => void): void
}

/** Called once, by the function that opens the database. */
export function connectCoordinators(db: QueryExecutorProvider, others: OtherCoordinators): Receiver {
  const hub = getHub(db)
  hub.others = others
  const { subscribers } = hub
  const getSubscribers = (topic: string) => [...(subscribers.get(topic) ?? [])]
  return {
    receive(messages, onError) {
      for (const { topic, payload } of messages)
        for (const { listener } of getSubscribers(topic))
          attempt(() => listener(payload, 'elsewhere'), onError)
    },
    reportGap(topics = [...subscribers.keys()], onError) {
      for (const topic of topics) for (const { onGap } of getSubscribers(topic)) attempt(onGap, onError)
    },
  }
}

function attempt(fn: () => void, onError: (error: unknown) => void): void {
  try {
    fn()
  } catch (error) {
    onError(error)
  }
}
