// What the server of shared ports and the check of its viewers agree on.
import type { IncomingHttpHeaders } from 'node:http'
import type { Actor } from '../../http/actor.ts'
import type { ServedShare } from '../../port-shares/types.ts'

/** A request to the origin of a share. */
export type ViewerRequest = {
  method: string
  /** Path and query, as received. */
  url: string
  headers: IncomingHttpHeaders
  /** Whether the request is a WebSocket handshake. */
  isUpgrade: boolean
}

export type ViewerDecision =
  | {
      type: 'serve'
      /** The viewer of a share for members; null for other audiences. */
      actor: Actor | null
      /** Path and query for the box: without the parameters of Boxwood. */
      url: string
      /** The Cookie header for the box: without the cookies of Boxwood. undefined: no cookies. */
      cookie: string | undefined
    }
  | {
      type: 'redirect'
      /** 303, 302 for a browser that signs in, or 307 for a form that the browser sends again. */
      status: 302 | 303 | 307
      location: string
      /** Values of Set-Cookie headers. */
      setCookies: readonly string[]
    }
  | {
      type: 'refuse'
      /** sign-in: a viewer session is needed; secret: the link has no or a wrong secret; cross-origin: another origin sent it. */
      reason: 'sign-in' | 'secret' | 'cross-origin' | 'not-found'
      setCookies?: readonly string[]
    }

/** Decides what a viewer gets. Serves the paths under RESERVED_PATH that belong to signing in. */
export type AuthorizeViewer = (share: ServedShare, request: ViewerRequest) => Promise<ViewerDecision>

/** Paths of a share's origin that Boxwood serves. The box does not get these requests. */
export const RESERVED_PATH = '/.boxwood/'
