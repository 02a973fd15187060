// The URL on the origin of a share for members that exchanges a code for a viewer session.

/** One of the paths that the server of shared ports does not forward to the box. */
export const CALLBACK_PATH = '/.boxwood/viewer'

/**
 * @param origin of the share
 * @param options.state of the sign-in; null: any browser may use the code
 * @param options.path where the browser continues, a local path
 */
export const createCallbackUrl = (
  origin: string,
  { code, state, path }: { code: string; state: string | null; path: string },
): string => {
  const query = new URLSearchParams({
    code,
    ...(state !== null && { state }),
    ...(path !== '/' && { path }),
  })
  return `${origin}${CALLBACK_PATH}?${query}`
}
