// Forwards responses with a status of 1xx, which precede the response.
import type { InformationEvent, ServerResponse } from 'node:http'
import { toPairs } from './raw-headers.ts'

const CONTINUE = 100

/** @param changeText see ResponseTransform */
export function forwardInformation(
  { statusCode, rawHeaders }: InformationEvent,
  response: ServerResponse,
  changeText: (text: string) => string = (text) => text,
): void {
  // HTTP/1.0 has no such responses.
  if (response.headersSent || response.destroyed || response.req.httpVersionMinor === 0) return
  // Node keeps the connection only when it knows that the client sends the body.
  if (statusCode === CONTINUE) {
    response.writeContinue()
    return
  }
  // These responses are optional. A viewer that does not read must not make the coordinator store them.
  if (response.socket?.writableNeedDrain !== false) return
  // Other headers have no meaning here, except in the final response, where they are filtered.
  const links = toPairs(rawHeaders).filter(([name]) => /^link$/i.test(name))
  try {
    response.writeInformation(statusCode, links.flat().map(changeText))
  } catch {
    // The box has sent a header that Node does not send.
  }
}
