// What the fake model server answers: the kinds of replies, and the script that selects the reply to a request.

export type ToolCall = {
  name: string
  /** Of a tool of the Responses API that takes a text instead of JSON: { freeform: 'the text' }. */
  input: Record<string, unknown>
  /** In which Codex groups the tools of an MCP server. */
  namespace?: string
}

/** A reply of the model. The server streams its parts in the order of the fields. */
export type ModelReply = {
  reasoning?: string
  /** Several strings are several deltas. */
  text?: string | readonly string[]
  /** Waits after `text` until the test releases the reply. */
  hold?: HeldReply
  tools?: readonly ToolCall[]
  /** Closes the connection without the end of the stream. */
  cut?: boolean
}
export type FailureReply = { status: number; message: string; code?: string }
export type Reply = ModelReply | FailureReply

export const text = (...deltas: string[]): ModelReply => ({ text: deltas })
export const toolCall = (name: string, input: Record<string, unknown>): ModelReply => ({
  tools: [{ name, input }],
})
export const cutStream = (partial: string): ModelReply => ({ text: partial, cut: true })
export const failure = (status: number, message: string): FailureReply => ({ status, message })
/** The answer of all providers to a model that does not exist. */
export const modelNotFound = (model: string): FailureReply => ({
  status: 404,
  message: `The model '${model}' does not exist`,
  code: 'model_not_found',
})

/** A reply that stops in the middle. `models.reply(held.reply)`, `await held.started`, `held.release('rest')`. */
export type HeldReply = {
  readonly reply: ModelReply
  /** Resolves when the text before the hold has been written to the client. */
  readonly started: Promise<void>
  /** Resolves when the client has disconnected before the end of the reply. */
  readonly disconnected: Promise<void>
  /** Continues the stream with this text. */
  release(rest?: string): void
}

/** The server's side of a held reply. */
export type Hold = { onStarted(): void; onDisconnected(): void; released: Promise<string> }
const holds = new WeakMap<HeldReply, Hold>()

export function holdStream(partial: string): HeldReply {
  const started = Promise.withResolvers<void>()
  const disconnected = Promise.withResolvers<void>()
  const released = Promise.withResolvers<string>()
  const held: HeldReply = {
    get reply() {
      return { text: partial, hold: held }
    },
    started: started.promise,
    disconnected: disconnected.promise,
    release: (rest = '') => released.resolve(rest),
  }
  holds.set(held, {
    onStarted: started.resolve,
    onDisconnected: disconnected.resolve,
    released: released.promise,
  })
  return held
}

export function holdOf(held: HeldReply): Hold {
  const hold = holds.get(held)
  if (!hold) throw new Error('a held reply comes from holdStream()')
  return hold
}

export type Script = {
  reply(...replies: Reply[]): void
  replyTo(marker: string, ...replies: Reply[]): void
  replyAlways(reply: Reply): void
  /** The reply to a request with these texts of the user. */
  take(userText: string): Reply
}

/** Replies are used once, in their order. Replies for the marker that is latest in the user's texts come first. */
export function createScript(): Script {
  const queue: Reply[] = []
  const byMarker = new Map<string, Reply[]>()
  let always: Reply = text('ok')
  return {
    reply: (...replies) => void queue.push(...replies),
    replyTo: (marker, ...replies) => void byMarker.set(marker, [...(byMarker.get(marker) ?? []), ...replies]),
    replyAlways: (reply) => {
      always = reply
    },
    take(userText) {
      const [latest] = [...byMarker]
        .map(([marker, replies]) => ({ replies, index: userText.lastIndexOf(marker) }))
        .filter(({ replies, index }) => replies.length > 0 && index >= 0)
        .sort((a, b) => b.index - a.index)
      return latest?.replies.shift() ?? queue.shift() ?? always
    },
  }
}
