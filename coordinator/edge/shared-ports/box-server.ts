// Serves a request of an allowed viewer: checks the state of the box, and forwards the request to the port.
import type { Logger } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import type { PauseGate } from '../../boxes/schedules/pause-gate.ts'
import type { BoxRow } from '../../db/schema.ts'
import { readClientAddress } from '../../http/client-address.ts'
import { forward } from '../../http/forward/forward.ts'
import { BodyTimeoutError } from '../../http/forward/limit-body-idle-time.ts'
import { toPairs } from '../../http/forward/raw-headers.ts'
import { getUpgrade } from '../../http/websocket.ts'
import type { PortShares, ServedShare, ShareBase } from '../../port-shares/types.ts'
import type { EdgeLimiter } from '../limits.ts'
import type { Exchange, Found, Served } from './exchange.ts'
import { createRequestHeaders } from './headers/request-headers.ts'
import { createResponseHeaders } from './headers/response-headers.ts'
import type { OpenShares } from './open-shares.ts'
import { sendPage } from './pages/page.ts'
import {
  BODY_TIMEOUT,
  createBrokenResponsePage,
  createNothingListensPage,
  createStatePage,
  createUnreachablePage,
  TOO_MANY_REQUESTS,
} from './pages/pages.ts'
import { type BoxConnections, TooManyConnectionsError } from './proxy/box-connections.ts'
import { describeResponseProblem } from './response-problem.ts'
import type { ViewerRequest } from './types.ts'
import { toLocalPath } from './viewers/local-path.ts'
import { createWakePath } from './viewers/wake-url.ts'

export type BoxServerOptions = {
  shares: Pick<PortShares, 'find'>
  base: ShareBase
  /** The URL of the coordinator, without a slash at its end. */
  publicUrl: string
  open: OpenShares
  boxConnections: BoxConnections
  /** See limitBodyIdleTime(). */
  bodyIdleMs: number
  limiter: Pick<EdgeLimiter, 'hold'>
  pauseGate: Pick<PauseGate, 'version' | 'wait'>
  /** See readClientAddress(). */
  isProxy(address: string): boolean
  log: Logger
}

/** A request that has no response after this time does not keep its box from being paused. */
const HOLD_MS = 60_000

/** @param pausesBefore the version of the pause gate before the box was read */
export type ServeBox = (
  exchange: Exchange,
  found: Found,
  decision: Served,
  pausesBefore: number,
) => Promise<void>

export function createBoxServer(options: BoxServerOptions): ServeBox {
  const { shares, base, publicUrl, open, boxConnections, bodyIdleMs, limiter, pauseGate, isProxy, log } =
    options

  /** A pause that was being decided before the request may have suspended the box since it was read. */
  async function waitForPause(found: Found, pausesBefore: number): Promise<Found> {
    const pause = pauseGate.wait(found.box.id)
    if (pause === undefined && pauseGate.version === pausesBefore) return found
    await pause
    return (await shares.find(found.share.slug)) ?? found
  }

  async function forwardToBox(
    { request, response }: Exchange,
    { share, box }: Found,
    decision: Served,
  ): Promise<void> {
    const { port, rewritesHost } = share
    const origin = base.getOrigin(share.slug)
    const upgrade = getUpgrade(request)
    try {
      const disconnected = new AbortController()
      const abort = () => disconnected.abort()
      response.once('close', abort)
      const { agent, release } = await boxConnections.acquire(box, port, disconnected.signal)
      response.off('close', abort)
      response.once('close', release)
      if (response.destroyed) release()
      const forwarded = await forward({
        request,
        response,
        upgrade,
        agent,
        url: decision.url,
        bodyIdleMs,
        headers: createRequestHeaders({
          headers: toPairs(request.rawHeaders),
          method: request.method ?? 'GET',
          isChunked: request.headers['transfer-encoding'] !== undefined,
          upgrade: upgrade && request.headers.upgrade,
          cookie: decision.cookie,
          origin,
          port,
          rewritesHost,
          clientAddress: readClientAddress(request, isProxy),
        }),
        createResponseHeaders: ({ rawHeaders, statusCode = 0 }, isChunked) =>
          createResponseHeaders({
            headers: toPairs(rawHeaders),
            status: statusCode,
            isChunked,
            isPrivate: share.access !== 'public',
            origin,
            port,
            rewritesHost,
          }),
      })
      if (forwarded !== 'response') open.addStream(response)
      if (forwarded === 'upgrade') release()
    } catch (error) {
      if (response.destroyed) return
      log.debug(
        { err: error, shareId: share.id, box: box.id },
        'failed to forward a request to a shared port',
      )
      sendPage(request, response, toPage(error, box, port))
    }
  }

  /** After the wake, the browser opens the same page, or the first one when it has sent a form. */
  function getWakeUrl({ slug }: ServedShare, { method }: ViewerRequest, { url }: Served): string {
    const path = method === 'GET' ? toLocalPath(url) : '/'
    return publicUrl + createWakePath({ slug, path })
  }

  return async (exchange, found, decision, pausesBefore) => {
    const { request, response, viewer } = exchange
    const release = limiter.hold(found.share.boxId)
    const timer = setTimeout(release, HOLD_MS).unref()
    try {
      const { share, box } = await waitForPause(found, pausesBefore)
      const page = createStatePage(box, decision.actor === null ? null : getWakeUrl(share, viewer, decision))
      if (page !== null) return sendPage(request, response, page)
      await forwardToBox(exchange, { share, box }, decision)
    } finally {
      // The bytes of the response count as activity of the box. An idle response must not.
      clearTimeout(timer)
      release()
    }
  }
}

/** The page for an error of the connection to the box, or of its response. */
function toPage(error: unknown, box: BoxRow, port: number) {
  if (error instanceof TooManyConnectionsError) return TOO_MANY_REQUESTS
  if (error instanceof BodyTimeoutError) return BODY_TIMEOUT
  if (!(error instanceof ApiError)) return createBrokenResponsePage(box, port, describeResponseProblem(error))
  return error.code === 'not_found' ? createNothingListensPage(box, port) : createUnreachablePage(box)
}
