// Which methods a path takes, for 405 and its Allow.

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** `/boxes/:id` as an expression over whole paths. */
const pattern = (path: string) =>
  new RegExp(
    `^${path
      .split('/')
      .map((part) => (part.startsWith(':') ? '[^/]+' : literal(part)))
      .join('/')}$`,
  )

/** Returns a lookup from a request's path to the methods known for it; none for an unknown path. */
export function allowedMethods(
  routes: readonly { method: string; path: string }[],
): (path: string) => string[] {
  const byPath = new Map<string, { matches: RegExp; methods: string[] }>()
  for (const { method, path } of routes) {
    const entry = byPath.get(path) ?? { matches: pattern(path), methods: [] }
    entry.methods.push(method)
    byPath.set(path, entry)
  }
  return (path) => [...byPath.values()].find(({ matches }) => matches.test(path))?.methods.sort() ?? []
}
