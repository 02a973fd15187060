// The listening TCP ports of the box, with their processes.
import { EventEmitter } from 'node:events'
import type { ListeningTuple } from '../../shared/api/process-snapshots.ts'
import { isSamePorts } from '../../shared/process-delta.ts'
import { MAX_LISTENING_PORTS } from '../../shared/report-limits.ts'
import { readProcess } from '../process-table.ts'
import { type BoxProcesses, readProcessName } from './box-processes.ts'
import { displayText } from './display-text.ts'
import { findSocketOwners } from './socket-owners.ts'
import { readListeningSockets, readSocketCounts } from './socket-table.ts'

export type Listeners = {
  /** Reads the sockets where they may have changed. Call it every second, one call at a time. */
  poll(): Promise<void>
  /**
   * One entry per port and process, by port: at most MAX_LISTENING_PORTS, and replaced at each change. null: not read yet.
   */
  current(): readonly ListeningTuple[] | null
  /** The number of different ports, also above MAX_LISTENING_PORTS. null: not read yet. */
  count(): number | null
  /** 'change': current() is different. */
  events: EventEmitter<{ change: [] }>
}

export type ListenersOptions = {
  procRoot?: string
  processes: BoxProcesses
  /** Whether the box has its own network. Otherwise only the sockets of its processes are the box's. */
  ownNetwork: boolean
  /** The port of the agent itself, which is not listed. Default: null, none. */
  readAgentPort?: (() => number | null) | undefined
  /** Milliseconds of a clock that is never set. */
  monotonicNow?: () => number
  /** CPU time of this process. */
  cpuTimeMs?: () => number
}

type Owner = { pid: number; startTime: number; name: string }
type Socket = { port: number; owner: Owner | null; searches: number }

/** The count of sockets does not change when as many are closed as opened, or when an owner exits or is renamed. */
const REFRESH_MS = 30_000
/** Reading the tables may use this share of a CPU: they are long on a box with many connections. */
const MAX_CPU_FRACTION = 0.05
/** On the network of the host, connections of other boxes change the counts too, and the box may be idle. */
const MAX_CPU_FRACTION_SHARED = 0.002
const MAX_PAUSE_MS = 10_000
/** The first list of processes may be older than the socket. */
const SEARCHES = 2
/** The kernel's names of programs have at most 15 bytes. */
const NAME_CHARS = 16

export function createListeners(options: ListenersOptions): Listeners {
  const { procRoot = '/proc', processes, ownNetwork, readAgentPort = () => null } = options
  const { monotonicNow = () => performance.now(), cpuTimeMs = readCpuTimeMs } = options
  const maxCpuFraction = ownNetwork ? MAX_CPU_FRACTION : MAX_CPU_FRACTION_SHARED
  const events = new EventEmitter<{ change: [] }>().setMaxListeners(0)
  /** The sockets by inode. */
  let sockets = new Map<string, Socket>()
  let ports: readonly ListeningTuple[] | null = null
  let portCount: number | null = null
  let counts: string | undefined
  let refreshAt = 0
  let pausedUntil = 0

  const isUnsearched = ({ owner, searches }: Socket) => owner === null && searches < SEARCHES

  async function readSockets(isRefresh: boolean): Promise<void> {
    if (isRefresh) for (const socket of sockets.values()) checkOwner(socket)
    const agentPort = readAgentPort()
    const listening = [...(await readListeningSockets(procRoot))].filter(([, port]) => port !== agentPort)
    sockets = new Map(
      listening.map(([inode, port]) => {
        const known = sockets.get(inode)
        return [inode, known?.port === port ? known : { port, owner: null, searches: 0 }]
      }),
    )
    const unsearched = new Map([...sockets].filter(([, socket]) => isUnsearched(socket)))
    if (unsearched.size === 0) return
    const owners = await findSocketOwners(unsearched.keys(), await processes.list(), procRoot)
    for (const [inode, socket] of unsearched) {
      socket.searches += 1
      socket.owner = owners.get(inode) ?? null
    }
  }

  /** Another process may have the socket of an exited one. A socket without an owner is searched for once more. */
  function checkOwner(socket: Socket): void {
    const entry = socket.owner === null ? undefined : readProcess(socket.owner.pid, procRoot)
    const isSame = entry !== undefined && entry.startTime === socket.owner?.startTime
    socket.owner = isSame ? { ...entry, name: readProcessName(entry, procRoot) } : null
    if (socket.owner === null) socket.searches = SEARCHES - 1
  }

  function publish(): void {
    const owned = [...sockets.values()].filter(({ owner }) => ownNetwork || owner !== null)
    portCount = new Set(owned.map(({ port }) => port)).size
    const next = listPorts(owned)
    if (ports !== null && isSamePorts(ports, next)) return
    ports = next
    events.emit('change')
  }

  return {
    async poll() {
      const startedAt = monotonicNow()
      if (startedAt < pausedUntil) return
      const isRefresh = startedAt >= refreshAt
      const latestCounts = readSocketCounts(procRoot)
      if (latestCounts === counts && !isRefresh && ![...sockets.values()].some(isUnsearched)) return
      const cpuBefore = cpuTimeMs()
      await readSockets(isRefresh)
      pausedUntil = startedAt + Math.min(MAX_PAUSE_MS, (cpuTimeMs() - cpuBefore) / maxCpuFraction)
      // The counts from before the tables were read: a later change causes the next poll to read the tables again.
      counts = latestCounts
      if (isRefresh) refreshAt = startedAt + REFRESH_MS
      publish()
    },
    current: () => ports,
    count: () => portCount,
    events,
  }
}

function readCpuTimeMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function listPorts(sockets: readonly Socket[]): ListeningTuple[] {
  // A process that listens on IPv4 and IPv6 has two sockets.
  const byKey = new Map(sockets.map((socket) => [`${socket.port}:${socket.owner?.pid ?? ''}`, socket]))
  return [...byKey.values()]
    .sort((a, b) => a.port - b.port || pidOf(a) - pidOf(b))
    .slice(0, MAX_LISTENING_PORTS)
    .map(({ port, owner }) => [port, owner?.pid ?? null, owner && displayText(owner.name, NAME_CHARS)])
}

/** Unknown owners last. */
const pidOf = ({ owner }: Socket): number => owner?.pid ?? Number.POSITIVE_INFINITY
