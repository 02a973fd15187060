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

/** Sorts `/boxes/suspend` before `/boxes/:id`. */
const toSortKey = (path: string) => path.replace(/:[^/]+/g, '\uffff')

/**
 * The returned function lists the methods of a request path, sorted; [] for an unknown path. Where several patterns match,
 * those of the one with fewer parameters.
 */
export function createMethodLookup(
  routes: readonly { method: string; path: string }[],
): (path: string) => string[] {
  const byPath = new Map<string, { regExp: RegExp; methods: string[] }>()
  for (const { method, path } of routes) {
    const entry = byPath.get(path) ?? { regExp: toRegExp(path), methods: [] }
    entry.methods.push(method)
    byPath.set(path, entry)
  }
  const entries = [...byPath]
    .sort(([a], [b]) => (toSortKey(a) < toSortKey(b) ? -1 : 1))
    .map(([, { regExp, methods }]) => ({ regExp, methods: methods.sort() }))
  return (path) => entries.find(({ regExp }) => regExp.test(path))?.methods ?? []
}
