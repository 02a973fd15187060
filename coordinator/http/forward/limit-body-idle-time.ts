// A viewer that sends the body of its request too slowly does not keep one of the connections to the port.
import type { ClientRequest, IncomingMessage } from 'node:http'

/** No byte of the request body has arrived for too long. */
export class BodyTimeoutError extends Error {
  override name = 'BodyTimeoutError'
}

/**
 * Destroys `outgoing` with a BodyTimeoutError when no byte of the body arrives for `idleMs`, or at the latest for twice this time.
 * The time in which the server does not read does not count. After its response, the server decides how long it waits.
 */
export function limitBodyIdleTime(request: IncomingMessage, outgoing: ClientRequest, idleMs: number): void {
  let isActive = false
  const onActivity = () => {
    isActive = true
  }
  const timer = setInterval(() => {
    if (!isActive && !request.isPaused())
      outgoing.destroy(new BodyTimeoutError('the request body arrived too slowly'))
    isActive = false
  }, idleMs)
  const stop = () => {
    clearInterval(timer)
    request.off('data', onActivity).off('resume', onActivity)
  }
  request.on('data', onActivity).on('resume', onActivity).once('end', stop)
  outgoing.once('response', stop).once('upgrade', stop).once('close', stop)
}
