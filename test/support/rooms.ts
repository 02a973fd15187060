// The rooms of the coordinator, in the order in which they may import each other.

/** A room imports rooms above it only. docs/architecture.md describes each of them. */
export const ROOMS = [
  'base',
  'db',
  'http',
  'audit',
  'jobs',
  'identity',
  'agents',
  'history',
  'providers',
  'boxes',
  'edge',
  'retention',
  'server',
] as const

type ImportEdge = { file: string; target: string }

/** The problem with an import between two files of `coordinator/`; null: it is allowed. */
export function findRoomProblem(file: string, target: string): string | null {
  const [from, to] = [getRoom(file), getRoom(target)]
  if (from === -1) return 'is in no room'
  if (to > from) return `imports ${target}, of a later room`
  return null
}

const getRoom = (file: string): number => ROOMS.findIndex((room) => file.startsWith(`coordinator/${room}/`))

const getDir = (file: string): string => file.slice(0, file.lastIndexOf('/'))
const contains = (dir: string, other: string): boolean => other.startsWith(`${dir}/`)

/**
 * The first import of each pair of directories that import each other. A directory and those inside it count as one: its files put
 * them together.
 */
export function findTwoWayImports(edges: readonly ImportEdge[]): (ImportEdge & { back: ImportEdge })[] {
  const firstByPair = new Map<string, ImportEdge>()
  for (const edge of edges) {
    const [from, to] = [getDir(edge.file), getDir(edge.target)]
    if (from === to || contains(from, to) || contains(to, from)) continue
    const pair = `${from} ${to}`
    if (!firstByPair.has(pair)) firstByPair.set(pair, edge)
  }
  return [...firstByPair.entries()].flatMap(([pair, edge]) => {
    const [from, to] = pair.split(' ')
    const back = firstByPair.get(`${to} ${from}`)
    return back !== undefined && (from ?? '') < (to ?? '') ? [{ ...edge, back }] : []
  })
}
