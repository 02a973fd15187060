// Rejects JSON that is valid but cannot be stored or forwarded unchanged.
import { formatField } from '../../shared/validation-message.ts'

/** Far deeper than the body of any route. Recursive functions may run on an accepted body. */
const MAX_DEPTH = 64
const SURROGATE_RULE = 'must not contain an unpaired surrogate, which UTF-8 cannot encode'

/** Describes the first problem in a parsed body; null when it has none. */
export function findJsonProblem(body: unknown): string | null {
  const path: PropertyKey[] = []

  function checkEntry(key: PropertyKey, value: unknown): string | null {
    path.push(key)
    const problem = check(value)
    path.pop()
    return problem
  }

  function check(value: unknown): string | null {
    if (typeof value === 'string')
      return value.isWellFormed() ? null : `${formatField(path, 'body')} ${SURROGATE_RULE}`
    if (typeof value !== 'object' || value === null) return null
    if (path.length === MAX_DEPTH) return `body must not be nested deeper than ${MAX_DEPTH} levels`
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        const problem = checkEntry(index, value[index])
        if (problem !== null) return problem
      }
      return null
    }
    for (const [key, item] of Object.entries(value)) {
      if (key === '__proto__') return `${formatField(path, 'body')} must not have a field named __proto__`
      if (!key.isWellFormed()) return `a field name in ${formatField(path, 'body')} ${SURROGATE_RULE}`
      const problem = checkEntry(key, item)
      if (problem !== null) return problem
    }
    return null
  }

  return check(body)
}
