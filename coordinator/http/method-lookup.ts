// Finds the methods that a path supports, for 405 responses and their Allow header.

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Converts a path pattern such as `/boxes/:id` to an expression that matches whole paths. */
const toRegExp = (path: string) =>
  new RegExp(
    `^${path
      .split('/')
      .map((segment) => (segment.startsWith(':') ? '[^/]+' : escapeRegExp(segment)))
      .join('/')}$`,
  )

/** The returned function lists the methods of a request path, sorted; [] for an unknown path. */
export function createMethodLookup(
  routes: readonly { method: string; path: string }[],
): (path: string) => string[] {
  const byPath = new Map<string, { regExp: RegExp; methods: string[] }>()
  for (const { method, path } of routes) {
    const entry = byPath.get(path) ?? { regExp: toRegExp(path), methods: [] }
    entry.methods.push(method)
    byPath.set(path, entry)
  }
  return (path) => [...byPath.values()].find(({ regExp }) => regExp.test(path))?.methods.sort() ?? []
}
