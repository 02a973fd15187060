// The pages of the dashboard by their paths, relative to the base of the document.

export const BOX_TABS = ['overview'] as const
export type BoxTab = (typeof BOX_TABS)[number]

export type Route = { page: 'boxes' } | { page: 'box'; name: string; tab: BoxTab } | { page: 'unknown' }

/** @param path without a leading slash and without its query, such as boxes/fig */
export function parseRoute(path: string): Route {
  const [root = '', name = '', tab = 'overview', ...rest] = path.replace(/\/$/, '').split('/')
  if (root === '' || (root === 'boxes' && name === '')) return { page: 'boxes' }
  const decoded = decode(name)
  if (root !== 'boxes' || decoded === null || rest.length > 0) return { page: 'unknown' }
  return isBoxTab(tab) ? { page: 'box', name: decoded, tab } : { page: 'unknown' }
}

const isBoxTab = (text: string): text is BoxTab => (BOX_TABS as readonly string[]).includes(text)

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Relative to the base of the document. */
export const formatBoxPath = (name: string): string => `boxes/${encodeURIComponent(name)}`
