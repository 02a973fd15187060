// Serves the requests to the origins of links: finds the share and checks the viewer.

import { ApiError } from '../../../shared/errors.ts'
import { type Actor, toSubject } from '../../http/actor.ts'
import { readClientAddress } from '../../http/client-address.ts'
import type { Connections } from '../../http/connections.ts'
import { isForwardable, isForwardableUpgrade } from '../../http/forward/forwardable.ts'
import type { HostHandler } from '../../http/host-handler.ts'
import { sendLargeCookiesPage } from '../../http/large-requests.ts'
import type { OpenRequests } from '../../http/open-requests.ts'
import type { PortShares, ServedShare } from '../../port-shares/types.ts'
import type { ForwardExchange } from '../forward-to-owner.ts'
import { type BoxServerOptions, createBoxServer } from './box-server.ts'
import type { Exchange, Found } from './exchange.ts'
import { type Page, sendPage, sendRedirect } from './pages/page.ts'
import {
  createErrorPage,
  createRefusalPage,
  INTERNAL_ERROR,
  INVALID_REQUEST,
  NO_SUCH_LINK,
  NO_SUCH_PAGE,
  SERVICE_WORKER_REFUSED,
  STOPPING,
} from './pages/pages.ts'
import { type AuthorizeViewer, RESERVED_PATH } from './types.ts'
import { createViewerRequest, hasLargeCookies, isOpening, isRootServiceWorker } from './viewer-request.ts'
import { isNavigation } from './viewers/request-source.ts'

export type ShareServerOptions = BoxServerOptions & {
  shares: Pick<PortShares, 'find' | 'recordOpening'>
  authorize: AuthorizeViewer
  openRequests: Pick<OpenRequests, 'add' | 'changeCount'>
  /** The connections of viewers. */
  connections: Pick<Connections, 'setAuthenticated' | 'setUnauthenticated'>
  /** Default: this is the only coordinator of the database. */
  forwardExchange?: ForwardExchange | undefined
  /** Aborts when the coordinator is about to stop. */
  closing: AbortSignal
}

export function createShareServer(options: ShareServerOptions): HostHandler {
  const { shares, base, authorize, open, openRequests, connections, closing, log } = options
  const serveBox = createBoxServer(options)

  async function serve(exchange: Exchange): Promise<void> {
    const { request, response, viewer } = exchange
    if (closing.aborted) return sendPage(request, response.setHeader('connection', 'close'), STOPPING)
    if (!isForwardable(request)) return sendPage(request, response, INVALID_REQUEST)
    if (isNavigation(viewer) && hasLargeCookies(request)) return sendLargeCookiesPage(response)
    const { changeCount: changesBefore } = openRequests
    const pausesBefore = options.pauseGate.version
    const found = await findAndAdd(exchange)
    if (found === undefined) {
      connections.setUnauthenticated(request.socket)
      return sendPage(request, response, NO_SUCH_LINK)
    }
    const { share } = found
    const decision = await authorize(share, viewer)
    if (decision.type === 'redirect') return sendRedirect(request, response, decision)
    if (decision.type === 'refuse') {
      connections.setUnauthenticated(request.socket)
      return sendPage(request, response, createRefusalPage(decision))
    }
    if (decision.actor !== null) {
      // Strangers may have the secret of a link: their connections are limited.
      connections.setAuthenticated(request.socket, toSubject(decision.actor))
      endWithAccess(exchange, share, { actor: decision.actor, changesBefore })
    }
    if (viewer.url.startsWith(RESERVED_PATH)) return sendPage(request, response, NO_SUCH_PAGE)
    if (share.access !== 'public' && isRootServiceWorker(viewer))
      return sendPage(request, response, SERVICE_WORKER_REFUSED)
    const clientAddress = readClientAddress(request, options.isProxy)
    const forwarding = options.forwardExchange?.(exchange, share.boxId, { clientAddress, keepsExpect: true })
    if (await forwarding) return
    if (isOpening(viewer)) shares.recordOpening(share.id)
    await serveBox(exchange, found, decision, pausesBefore)
  }

  /** From then on the response is closed when the share ends. */
  async function findAndAdd({ request, response }: Exchange): Promise<Found | undefined> {
    const slug = base.parseHost(request.headers.host)
    if (slug === undefined) return undefined
    const endedBefore = open.endedCount
    const found = await shares.find(slug)
    if (found === undefined) return undefined
    open.add(found.share, response)
    // The share may have ended before its end could be noticed.
    return open.endedCount === endedBefore ? found : shares.find(slug)
  }

  /** Closes the response when the viewer may not see the box any more. */
  function endWithAccess(
    { response, viewer }: Exchange,
    share: ServedShare,
    authenticated: { actor: Actor; changesBefore: number },
  ): void {
    const { signal } = openRequests.add({
      ...authenticated,
      response,
      async authenticate() {
        const decision = await authorize(share, viewer)
        if (decision.type === 'serve' && decision.actor !== null) return decision.actor
        throw new ApiError('unauthorized')
      },
    })
    signal.addEventListener('abort', () => response.destroy())
  }

  return {
    accepts: (host) => base.parseHost(host) !== undefined,
    acceptsUpgrade: isForwardableUpgrade,
    listener(request, response) {
      serve({ request, response, viewer: createViewerRequest(request) })
        .catch((error: unknown) => {
          const page = toErrorPage(error)
          if (page === INTERNAL_ERROR && !response.destroyed)
            log.error({ err: error, method: request.method }, 'request to a shared port failed')
          sendPage(request, response, page)
        })
        .catch((err: unknown) => {
          log.error({ err, method: request.method }, 'failed to respond to a request to a shared port')
          response.destroy()
        })
    },
  }
}

const toErrorPage = (error: unknown): Page =>
  error instanceof ApiError ? createErrorPage(error) : INTERNAL_ERROR
