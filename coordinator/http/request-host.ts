// Which part of the API a URL belongs to.
import type { Host } from './errors.ts'
import { CONTROL_PREFIX, EDGE_PREFIX } from './prefixes.ts'

/** null: a health check, a page or an unknown path. */
export function getHost(url: string): Host | null {
  const isUnder = (prefix: string) => /^(?:$|[/?])/.test(url.slice(prefix.length)) && url.startsWith(prefix)
  if (isUnder(CONTROL_PREFIX)) return 'control'
  return isUnder(EDGE_PREFIX) ? 'edge' : null
}
