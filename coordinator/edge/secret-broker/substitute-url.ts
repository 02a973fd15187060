// Replaces placeholders by values in the path and in the query of a URL. The names in a query are never changed.
import { encodeParameter, encodePathSegment } from './encode-value.ts'
import type { Substitution } from './substitution.ts'

/**
 * @param url path and query
 * @throws BrokerError
 */
export function substituteUrl(url: string, substitution: Substitution): string {
  const [path = '', ...rest] = url.split('?')
  const replacedPath = substitution.replace(path, 'path', encodePathSegment)
  if (rest.length === 0) return replacedPath
  const query = rest
    .join('?')
    .split('&')
    .map((part) => {
      const end = part.indexOf('=') + 1
      if (end === 0) return part
      return part.slice(0, end) + substitution.replace(part.slice(end), 'query', encodeParameter)
    })
  return `${replacedPath}?${query.join('&')}`
}
