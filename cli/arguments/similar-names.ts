// Finds the names that a user may have meant: those that differ from the typed one by a few characters.

/** Names with more differences are not similar, however long they are. */
const MAX_DISTANCE = 2
const MAX_NAMES = 3

/** Returns the most similar names. A name of up to five characters may differ by one character, a longer one by two. */
export function findSimilarNames(typed: string, names: readonly string[]): string[] {
  const limit = Math.min(MAX_DISTANCE, Math.floor(typed.length / 3))
  const distances = [...new Set(names)].map((name) => ({ name, distance: getDistance(typed, name, limit) }))
  const nearest = Math.min(...distances.map(({ distance }) => distance))
  if (nearest > limit) return []
  return distances
    .filter(({ distance }) => distance === nearest)
    .map(({ name }) => name)
    .slice(0, MAX_NAMES)
}

/** A sentence with a leading space; empty without a similar name. */
export function suggestNames(typed: string, names: readonly string[]): string {
  const similar = findSimilarNames(typed, names)
  return similar.length === 0 ? '' : ` Did you mean ${similar.join(' or ')}?`
}

/**
 * The number of insertions, deletions, replacements and exchanges of neighbours (optimal string alignment). A distance above
 * `limit` is only known to be larger.
 */
function getDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let [beforePrevious, previous] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const exchanged = isExchange ? (beforePrevious[j - 2] ?? 0) + 1 : replaced
      current.push(Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, replaced, exchanged))
    }
    ;[beforePrevious, previous] = [previous, current]
  }
  return previous[b.length] ?? 0
}
