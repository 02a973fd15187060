// What viewers see when the box does not serve their request.
import type { ApiError } from '../../../../shared/errors.ts'
import type { BoxRow } from '../../../db/schema.ts'
import { RESERVED_PATH, type ViewerDecision } from '../types.ts'
import type { Page } from './page.ts'

type Refusal = Extract<ViewerDecision, { type: 'refuse' }>

/** The same for unknown, revoked, expired and disabled links, and for members who do not see the box. */
export const NO_SUCH_LINK: Page = {
  status: 404,
  code: 'not_found',
  title: 'This link does not exist',
  message: 'The link was never created, or it has been removed or has expired. Ask for a new one.',
  clearsSite: true,
}

/** An unknown path of those that Boxwood serves. */
export const NO_SUCH_PAGE: Page = {
  status: 404,
  code: 'not_found',
  title: 'This page does not exist',
  message: `Boxwood serves the paths under ${RESERVED_PATH} itself, and has no such page.`,
}

export const INVALID_REQUEST: Page = {
  status: 400,
  code: 'bad_request',
  title: 'The request is not valid',
  message: 'The request cannot be forwarded. Check the client and any proxy in front of the coordinator.',
}

/** The URLs with which viewers sign in, and those of links for anyone, contain credentials. */
export const SERVICE_WORKER_REFUSED: Page = {
  status: 403,
  code: 'not_allowed',
  title: 'This service worker is not allowed',
  message:
    'A service worker for the whole origin of the link would see the credentials in URLs of its viewers. Put its script into a directory, use a public link, or forward the port with `box forward`.',
}

export const STOPPING: Page = {
  status: 503,
  code: 'control_plane_unavailable',
  title: 'Boxwood is restarting',
  message: 'The coordinator is stopping. Try again.',
  reloads: true,
}

export const INTERNAL_ERROR: Page = {
  status: 500,
  code: 'internal_error',
  title: 'The link cannot be opened',
  message: 'An unexpected error occurred. Try again.',
}

export const TOO_MANY_REQUESTS: Page = {
  status: 503,
  code: 'rate_limited',
  title: 'The box is busy',
  message: 'The box has too many open requests. Try again.',
  reloads: true,
}

export const BODY_TIMEOUT: Page = {
  status: 408,
  code: 'request_timeout',
  title: 'The request was too slow',
  message: 'The request body arrived too slowly. Try again.',
}

const REFUSALS: Record<Refusal['reason'], Page> = {
  'not-found': NO_SUCH_LINK,
  'sign-in': {
    status: 401,
    code: 'unauthorized',
    title: 'Sign in to open this link',
    message: 'The link is for members of its workspace. Open it in a browser and sign in.',
  },
  secret: {
    status: 403,
    code: 'not_allowed',
    title: 'The link is incomplete',
    message: 'The link has a secret, which is missing or wrong. Open the complete link that you were given.',
  },
  'cross-origin': {
    status: 403,
    code: 'not_allowed',
    title: 'The request came from another page',
    message: 'A page of another origin sent this request. Open the link itself.',
  },
}

export const createRefusalPage = ({ reason, setCookies = [] }: Refusal): Page => ({
  ...REFUSALS[reason],
  setCookies,
})

export const createErrorPage = ({ status, code, message }: ApiError): Page => ({
  ...{ status, code, message },
  title: 'The request was refused',
})

export const createNothingListensPage = ({ hostname }: BoxRow, port: number): Page => ({
  status: 502,
  code: 'box_unreachable',
  title: `Nothing listens on port ${port} yet`,
  message: `No program on box ${hostname} listens on port ${port}. Start it.`,
  reloads: true,
})

export const createUnreachablePage = ({ hostname }: BoxRow): Page => ({
  status: 502,
  code: 'box_unreachable',
  title: `Box ${hostname} cannot be reached`,
  message: `Box ${hostname} is not connected.`,
  reloads: true,
})

/** @param problem see describeResponseProblem() */
export const createBrokenResponsePage = ({ hostname }: BoxRow, port: number, problem: string): Page => ({
  status: 502,
  code: 'box_unreachable',
  title: `The program on port ${port} did not respond`,
  message: `The program that listens on port ${port} of box ${hostname} ${problem}.`,
})

/** @param wakeUrl the page of the main origin that wakes the box; null: the viewer is no member */
function createSuspendedPage({ hostname }: BoxRow, wakeUrl: string | null): Page {
  return {
    status: 503,
    code: 'box_not_running',
    title: `Box ${hostname} is suspended`,
    message: `Box ${hostname} is suspended. ${wakeUrl === null ? 'A member of its workspace can wake it.' : 'Wake it to open the link.'}`,
    ...(wakeUrl !== null && { link: { label: 'Wake the box', href: wakeUrl } }),
  }
}

/**
 * The page of the main origin with the button that wakes a box.
 * @param path on the main origin, with which the button sends a POST request
 * @param origin of the link, which is opened after the wake
 */
export const createWakePage = (
  { hostname }: BoxRow,
  { path, origin }: { path: string; origin: string },
): Page => ({
  status: 200,
  code: 'box_not_running',
  title: `Box ${hostname} is suspended`,
  message: `Box ${hostname} is suspended. Wake it to open the link.`,
  button: { label: 'Wake the box', action: path, leadsTo: origin },
})

const createFailedPage = ({ hostname }: BoxRow): Page => ({
  status: 502,
  code: 'box_unreachable',
  title: `Box ${hostname} cannot be reached`,
  message: `Box ${hostname} could not be provisioned.`,
})

const createStartingPage = ({ hostname }: BoxRow): Page => ({
  status: 503,
  code: 'box_not_running',
  title: `Box ${hostname} is starting`,
  message: `Box ${hostname} is starting. Try again.`,
  reloads: true,
})

/**
 * Returns the page for a box that does not run; null: it should be connected.
 * @param wakeUrl see createSuspendedPage()
 */
export function createStatePage(box: BoxRow, wakeUrl: string | null): Page | null {
  const { desired_state: desired, observed_state: observed, kind } = box
  if (observed === 'provision_failed') return createFailedPage(box)
  if (desired !== 'running') return createSuspendedPage(box, wakeUrl)
  if (observed === 'running' || observed === 'degraded') return null
  // The machine may be switched off: nothing starts it.
  return kind === 'machine' ? createUnreachablePage(box) : createStartingPage(box)
}
