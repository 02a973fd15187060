// The paths on the origin of a share for members with which a sign-in starts and ends. The box does not get these requests.
import { RESERVED_PATH } from '../types.ts'

/** Starts a sign-in also in a browser that has a viewer session. */
export const START_PATH = `${RESERVED_PATH}sign-in`

/** Exchanges a code for a viewer session. */
export const CALLBACK_PATH = `${RESERVED_PATH}viewer`

/**
 * @param origin of the share
 * @param options.state of the sign-in
 * @param options.path where the browser continues, a local path
 */
export const createCallbackUrl = (
  origin: string,
  { code, state, path }: { code: string; state: string; path: string },
): string => {
  const query = new URLSearchParams({ code, state, ...(path !== '/' && { path }) })
  return `${origin}${CALLBACK_PATH}?${query}`
}
