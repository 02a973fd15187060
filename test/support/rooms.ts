// The rooms of the coordinator, in the order in which they may import each other.

/** A room imports rooms above it only. docs/architecture.md describes each of them. */
export const ROOMS = [
  'base',
  'db',
  'http',
  'audit',
  'jobs',
  'identity',
  'admission',
  'agents',
  'history',
  'providers',
  'boxes',
  'port-shares',
  'secrets',
  'environments',
  'images',
  'machines',
  'download-links',
  'feed',
  'team',
  'billing',
  'federation',
  'edge',
  'retention',
  'server',
] as const

type ImportEdge = { file: string; target: string }

/** The problem with an import between two files of `coordinator/`; null: it is allowed. */
export function findRoomProblem(file: string, target: string): string | null {
  const [from, to] = [getRoom(file), getRoom(target)]
  if (to > from) return `imports ${target}, of a later room`
  return null
}

export const isInRoom = (file: string): boolean => getRoom(file) !== -1

const getRoom = (file: string): number => ROOMS.findIndex((room) => file.startsWith(`coordinator/${room}/`))

const getDir = (file: string): string => file.slice(0, file.lastIndexOf('/'))

/** The directories of the two files below the directory that contains both; undefined: it has one of the files itself. */
function findSiblings({ file, target }: ImportEdge): [from: string, to: string] | undefined {
  const [from, to] = [getDir(file).split('/'), getDir(target).split('/')]
  const depth = from.findIndex((name, index) => name !== to[index])
  if (depth === -1 || to[depth] === undefined) return undefined
  return [from.slice(0, depth + 1).join('/'), to.slice(0, depth + 1).join('/')]
}

/**
 * The first import of each pair of directories that import each other. A directory and those inside it count as one: its files put
 * them together.
 */
export function findTwoWayImports(edges: readonly ImportEdge[]): (ImportEdge & { back: ImportEdge })[] {
  const firstByPair = new Map<string, ImportEdge>()
  for (const edge of edges) {
    const pair = findSiblings(edge)?.join(' ')
    if (pair !== undefined && !firstByPair.has(pair)) firstByPair.set(pair, edge)
  }
  return [...firstByPair.entries()].flatMap(([pair, edge]) => {
    const [from, to] = pair.split(' ')
    const back = firstByPair.get(`${to} ${from}`)
    return back !== undefined && (from ?? '') < (to ?? '') ? [{ ...edge, back }] : []
  })
}
