// Converts the hostname of a machine to the name of a box.
import { LIMITS } from '../../shared/limits.ts'

/** Names that do not distinguish machines. */
const GENERIC = new Set(['localhost', 'localhost-localdomain', 'none', 'unknown'])

/** The first label of the hostname, in the characters of box names; null: no name is left. */
export function toBoxName(hostname: string): string | null {
  const name = (hostname.split('.', 1)[0] ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, LIMITS.boxNameLength)
    .replace(/-$/, '')
  return name === '' || GENERIC.has(name) ? null : name
}
