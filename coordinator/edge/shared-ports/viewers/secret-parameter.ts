// The secret of an anyone link in a URL.
import { SECRET_PARAMETER } from '../../../port-shares/types.ts'

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Removes the secret from the query of a URL. All other bytes stay as they are.
 * @returns the values of the parameter, and the URL without it
 */
export function takeSecret(url: string): { secrets: readonly string[]; url: string } {
  const start = url.indexOf('?')
  if (start === -1) return { secrets: [], url }
  const secrets: string[] = []
  const parameters = url.slice(start + 1).split('&')
  const kept = parameters.filter((parameter) => {
    const [name = '', ...value] = parameter.split('=')
    if (decode(name) !== SECRET_PARAMETER) return true
    secrets.push(decode(value.join('=')))
    return false
  })
  if (secrets.length === 0) return { secrets, url }
  const query = kept.length === 0 ? '' : `?${kept.join('&')}`
  return { secrets, url: url.slice(0, start) + query }
}
