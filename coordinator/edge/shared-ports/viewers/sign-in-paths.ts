// The URLs of a sign-in to a share for members. The sign-in starts at the share, continues at the main origin, which has the
// dashboard session, and returns to the share with a code. The code is valid for a browser with the cookie whose hash is
// `state`: a link with a code of another person does not sign in, and a code that is read in a URL is of no use.
import { hashSecret } from '../../../http/hash-secret.ts'
import { RESERVED_PATH } from '../types.ts'

/** On the main origin. */
export const SIGN_IN_PATH = '/share/sign-in'

/** On the origin of a share. */
export const CALLBACK_PATH = `${RESERVED_PATH}viewer`

/** The parameter `state` of a sign-in whose browser has this cookie. */
export const toState = (stateCookie: string): string => hashSecret(stateCookie)

export const isState = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** @param path a local path, see isLocalPath() */
export const createSignInUrl = (
  publicUrl: string,
  { slug, path, state }: { slug: string; path: string; state: string },
): string => `${publicUrl}${SIGN_IN_PATH}?${new URLSearchParams({ slug, path, state })}`

/**
 * @param origin of the share
 * @param options.path where the browser continues, a local path. Default: /
 * @param options.state undefined: any browser may use the code
 */
export const createCallbackUrl = (
  origin: string,
  { code, path, state }: { code: string; path?: string; state?: string },
): string =>
  `${origin}${CALLBACK_PATH}?${new URLSearchParams({ code, ...(state && { state }), ...(path && { path }) })}`
