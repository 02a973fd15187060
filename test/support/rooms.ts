// The rooms of the components, in the order in which they may import each other: a room is a directory at the top of a component.
// Files beside the rooms are in none of them, except in the coordinator, where each file is in a room.

/** A room imports rooms before it only. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  coordinator: [
    'base',
    'db',
    'replicas',
    'http',
    'deployment',
    'audit',
    'jobs',
    'identity',
    'admission',
    'agents',
    'history',
    'providers',
    'warm-machines',
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
    'mcp',
    'retention',
    'server',
  ],
  agent: [
    'requests',
    'reports',
    'vitals',
    'files',
    'tunnel',
    'attach',
    'exec',
    'prompts',
    'ports',
    'broker',
    'cloud',
    'environment',
    'terminal',
    'desktop',
    'machine',
    'upgrade',
    'init',
    'setup',
  ],
  cli: [
    'output',
    'arguments',
    'connection',
    'lists',
    'follow',
    'local',
    'attach',
    'processes',
    'terminal',
    'exec',
    'wait',
    'snapshots',
    'env',
    'environments',
    'boxes',
    'prompts',
    'history',
    'logs',
    'files',
    'copy',
    'forward',
    'openssh',
    'desktop',
    'metrics',
    'top',
    'docs',
    'doctor',
    'login',
    'members',
    'workspaces',
    'team',
    'policies',
    'audit',
    'billing',
    'federation',
    'keys',
    'secrets',
    'shares',
    'images',
    'machines',
    'mcp',
    'completion',
    'install',
    'commands',
  ],
}

type ImportEdge = { file: string; target: string }

/** The problem with the rooms of a file and of its imports in the same component, each with the imported file. */
export function findRoomProblems(
  file: string,
  targets: readonly string[],
): { target?: string; problem: string }[] {
  const [component = '', room = '', inside] = file.split('/')
  const rooms = ROOMS[component]
  if (rooms === undefined) return []
  if (inside === undefined && component !== 'coordinator') return []
  const own = rooms.indexOf(room)
  if (own === -1) return [{ problem: 'is in no room' }]
  return targets
    .filter((target) => target.startsWith(`${component}/`) && rooms.indexOf(target.split('/')[1] ?? '') > own)
    .map((target) => ({ target, problem: `imports ${target}, of a later room` }))
}

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
