// Which texts are host names: the agent sends the name that a program has requested.
import { isIP } from 'node:net'

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
/** Resolvers take such a name for an IPv4 address: 127.1, 0x7f000001. */
const NUMERIC_LABEL = /^(?:\d+|0x[0-9a-f]*)$/

/** Lowercase ASCII, as the hosts of secrets: international names in the form xn--. */
export function isHostName(text: string): boolean {
  const labels = text.split('.')
  return (
    text.length <= 253 &&
    isIP(text) === 0 &&
    labels.every((label) => LABEL.test(label)) &&
    !NUMERIC_LABEL.test(labels.at(-1) ?? '')
  )
}
