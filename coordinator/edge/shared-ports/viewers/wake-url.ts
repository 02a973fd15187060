// The URL of the page that wakes the box of a share for members. It is on the main origin: the app on the box controls the
// origin of the share, and could wake its box with the session of a viewer there.
import { isLocalPath } from './local-path.ts'
import { isSlug } from './slug.ts'

/** On the main origin. */
export const WAKE_PATH = '/share/wake'

export type ShareWake = {
  slug: string
  /** Where the browser continues at the share: a local path. */
  path: string
}

/** The path and query on the main origin. */
export const createWakePath = ({ slug, path }: ShareWake): string =>
  `${WAKE_PATH}?${new URLSearchParams({ slug, path })}`

/** @param url path and query. Returns undefined for a URL that createWakePath() has not created. */
export function parseWakeUrl(url: string): ShareWake | undefined {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  const [slug, path] = ['slug', 'path'].map((name) => query.get(name) ?? '')
  if (slug === undefined || path === undefined) return undefined
  return isSlug(slug) && isLocalPath(path) ? { slug, path } : undefined
}
