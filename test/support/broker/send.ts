// Sends a request as a program of a box.
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { HOST, type TestBroker } from './start-broker.ts'

export type TestResponse = {
  statusCode: number
  statusMessage: string
  headers: IncomingHttpHeaders
  trailers: IncomingMessage['trailers']
  text: string
  body: Buffer
}

export type SendOptions = RequestOptions & {
  body?: string | Buffer
  /** Default: a new connection. The request closes it. */
  socket?: Duplex
}

export async function send(
  broker: Pick<TestBroker, 'connect'>,
  options: SendOptions = {},
): Promise<TestResponse> {
  const { body, socket = await broker.connect(), ...rest } = options
  const outgoing = request({
    ...rest,
    headers: { host: HOST, ...(rest.headers as object) },
    createConnection: () => socket,
  })
  return new Promise((resolve, reject) => {
    outgoing.on('error', reject)
    outgoing.once('response', (incoming) => readResponse(incoming).then(resolve, reject))
    outgoing.end(body)
  })
}

async function readResponse(incoming: IncomingMessage): Promise<TestResponse> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const { statusCode = 0, statusMessage = '', headers, trailers } = incoming
  const body = Buffer.concat(chunks)
  return { statusCode, statusMessage, headers, trailers, text: body.toString(), body }
}
