// A client of GET /exec/{processId}/stream that keeps what it was sent.
import { get, type IncomingMessage } from 'node:http'

export type StreamEvent = {
  event: string
  id: string
  // biome-ignore lint/suspicious/noExplicitAny: what a client parses is whatever the server sent.
  data: any
}

export type StreamReader = {
  response: IncomingMessage
  /** All so far. */
  events: StreamEvent[]
  /** Resolves with all of them when the stream has ended; rejects when it was cut. */
  ended: Promise<StreamEvent[]>
  leave(): void
}

/** Rejects with the answer's status and text when there is no stream. @param url of the stream, with its query */
export async function openStream(url: string, headers: Record<string, string>): Promise<StreamReader> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = get(url, { agent: false, headers })
  request.on('error', reject)
  request.once('response', resolve)
  const response = await promise
  if (response.statusCode !== 200)
    throw new Error(`${response.statusCode}: ${Buffer.concat(await response.toArray())}`)
  const events: StreamEvent[] = []
  let rest: Buffer = Buffer.alloc(0)
  const ended = new Promise<StreamEvent[]>((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      for (let end = rest.indexOf('\n\n'); end !== -1; end = rest.indexOf('\n\n')) {
        const [, event = '', id = '', data = ''] =
          /^event: (.*)\nid: (.*)\ndata: (.*)$/.exec(rest.toString('utf8', 0, end)) ?? []
        events.push({ event, id, data: JSON.parse(data) })
        rest = rest.subarray(end + 2)
      }
    })
    response.once('end', () => resolve(events))
    response.once('error', reject)
    response.once('close', () => reject(new Error('the stream was cut')))
  })
  ended.catch(() => undefined)
  return { response, events, ended, leave: () => request.destroy() }
}

/** The bytes of a stream, as its events under base64 have them. */
export const bytesOf = (events: readonly StreamEvent[], name: string): Buffer =>
  Buffer.concat(
    events.filter(({ event }) => event === name).map(({ data }) => Buffer.from(data.data, 'base64')),
  )

export const textOf = (events: readonly StreamEvent[], name: string): string =>
  events
    .filter(({ event }) => event === name)
    .map(({ data }) => data.data)
    .join('')
