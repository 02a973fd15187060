// The URL of a sign-in to a share for members. The sign-in starts at the share, continues at the main origin, which has the
// dashboard session, and returns to the share with a code. The code is valid for a browser with the cookie whose hash is
// `state`: a link with a code of another person does not sign in, and a code that is read in a URL is of no use.
import { hashSecret } from '../../../http/hash-secret.ts'
import { isLocalPath } from './local-path.ts'
import { isSlug } from './slug.ts'

/** On the main origin. */
export const SIGN_IN_PATH = '/share/sign-in'

export type ShareSignIn = {
  slug: string
  /** Where the browser continues at the share: a local path. */
  path: string
  state: string
}

/** The parameter `state` of a sign-in whose browser has this cookie. */
export const toState = (stateCookie: string): string => hashSecret(stateCookie)

/** The path and query on the main origin. */
export const createSignInPath = ({ slug, path, state }: ShareSignIn): string =>
  `${SIGN_IN_PATH}?${new URLSearchParams({ slug, path, state })}`

/** The state is a hash. */
const STATE = /^[0-9a-f]{64}$/

/** @param url path and query. Returns undefined for a URL that createSignInPath() has not created. */
export function parseSignInUrl(url: string): ShareSignIn | undefined {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  const [slug, path, state] = ['slug', 'path', 'state'].map((name) => query.get(name) ?? '')
  if (slug === undefined || path === undefined || state === undefined) return undefined
  return isSlug(slug) && isLocalPath(path) && STATE.test(state) ? { slug, path, state } : undefined
}
