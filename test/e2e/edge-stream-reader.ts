// A client of server-sent events that records the events.
import { get, type IncomingMessage } from 'node:http'

export type StreamEvent = {
  event: string
  id: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
  data: any
}

export type StreamReader = {
  response: IncomingMessage
  /** The events so far. */
  events: StreamEvent[]
  /** Resolves with all events when the response has ended. Rejects when it is interrupted. */
  ended: Promise<StreamEvent[]>
  disconnect(): void
}

/**
 * Rejects with the status and text of an error response.
 * @param url includes the query
 */
export async function openStream(url: string, headers: Record<string, string>): Promise<StreamReader> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = get(url, { agent: false, headers })
  request.on('error', reject)
  request.once('response', resolve)
  const response = await promise
  if (response.statusCode !== 200)
    throw new Error(`${response.statusCode}: ${Buffer.concat(await response.toArray())}`)
  const events: StreamEvent[] = []
  let remainder: Buffer = Buffer.alloc(0)
  const ended = new Promise<StreamEvent[]>((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      remainder = remainder.length === 0 ? chunk : Buffer.concat([remainder, chunk])
      for (let end = remainder.indexOf('\n\n'); end !== -1; end = remainder.indexOf('\n\n')) {
        const text = remainder.toString('utf8', 0, end)
        remainder = remainder.subarray(end + 2)
        if (text.startsWith(':')) continue
        const [, event = '', id = '', data = ''] = /^event: (.*)\nid: (.*)\ndata: ([^\n]*)$/.exec(text) ?? []
        events.push({ event, id, data: JSON.parse(data) })
      }
    })
    response.once('end', () => resolve(events))
    response.once('error', reject)
    response.once('close', () => reject(new Error('the stream was interrupted')))
  })
  ended.catch(() => undefined)
  return { response, events, ended, disconnect: () => request.destroy() }
}

/** The bytes of `stdout` or `stderr` from a stream with the encoding base64. */
export const collectBytes = (events: readonly StreamEvent[], name: string): Buffer =>
  Buffer.concat(
    events.filter(({ event }) => event === name).map(({ data }) => Buffer.from(data.data, 'base64')),
  )

/** The text of `stdout` or `stderr` from a stream with the encoding utf8. */
export const collectText = (events: readonly StreamEvent[], name: string): string =>
  events
    .filter(({ event }) => event === name)
    .map(({ data }) => data.data)
    .join('')
