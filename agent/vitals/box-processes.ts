// Lists the processes of the box in one pass over its cgroup, or over /proc.
import { basename } from 'node:path'
import {
  hasEnvironmentVariable,
  listPids,
  type ProcessEntry,
  readProcess,
  readProcessArguments,
  readProcessStatus,
} from '../process-table.ts'
import { listCgroupPids } from './cgroup-pids.ts'
import { yieldEvery } from './yield-every.ts'

export type BoxProcess = ProcessEntry & {
  /** The real uid. */
  uid: number
  /** Resident memory; 0 for zombies. */
  rssBytes: number
  /** The part of the resident memory that is anonymous or shared, not of files. */
  anonymousBytes: number
}

/** How to recognise the box's processes in a process table that lists others too. */
export type Membership = {
  boxId: string
  /** The uid that no other box and no user of the host has; null when the box has none. */
  ownUid: number | null
  /** The directory of a cgroup that only the box has. */
  cgroupDir?: string | undefined
}

export type BoxProcessesOptions = {
  procRoot?: string
  /** null: every process in the table belongs to the box. */
  membership: Membership | null
  agentPid?: number
}

export type BoxProcesses = {
  /** Lists the processes by pid, ascending, without kernel threads. Callers during a pass share its result. */
  list(): Promise<readonly BoxProcess[]>
}

export function createBoxProcesses(options: BoxProcessesOptions): BoxProcesses {
  const { procRoot = '/proc', membership, agentPid = process.pid } = options
  const belongsToBox = membership === null ? () => true : createMembershipTest(membership, procRoot)
  let pass: Promise<readonly BoxProcess[]> | undefined

  /** undefined: the box has no cgroup, or the agent is not in it. */
  function readCgroup(): number[] | undefined {
    const pids = membership?.cgroupDir ? listCgroupPids(membership.cgroupDir) : []
    return pids.includes(agentPid) ? pids : undefined
  }

  async function readAll(): Promise<readonly BoxProcess[]> {
    const table = new Map<number, ProcessEntry>()
    // Reading the processes of all boxes in each box would make the cost of a machine grow with the square of its boxes.
    const cgroupPids = readCgroup()
    const isMember = cgroupPids === undefined ? belongsToBox : () => true
    for await (const pid of yieldEvery(32, cgroupPids ?? listPids(procRoot))) {
      const entry = readProcess(pid, procRoot)
      if (entry !== undefined && !entry.isKernelThread) table.set(pid, entry)
    }
    const processes: BoxProcess[] = []
    for await (const entry of yieldEvery(32, table.values())) {
      if (!isMember(entry, table)) continue
      const process = addStatus(entry, procRoot)
      if (process !== undefined) processes.push(process)
    }
    return processes.sort((a, b) => a.pid - b.pid)
  }

  return {
    list() {
      pass ??= readAll().finally(() => {
        pass = undefined
      })
      return pass
    },
  }
}

/** undefined when the process has exited since it was listed. */
function addStatus(entry: ProcessEntry, procRoot: string): BoxProcess | undefined {
  const status = readProcessStatus(entry.pid, procRoot)
  if (status === undefined) return undefined
  const bytes = (name: string) => parseNumber(status, name) * 1024
  return {
    ...entry,
    name: readProcessName(entry, procRoot),
    uid: parseNumber(status, 'Uid'),
    rssBytes: bytes('VmRSS'),
    anonymousBytes: bytes('RssAnon') + bytes('RssShmem'),
  }
}

/** Newer versions of Node give their main thread this name, which is then the kernel's name of the process. */
const NODE_MAIN_THREAD = 'MainThread'
const MAX_PATH_BYTES = 4096

/** The kernel's name; for Node's main thread, the file name of the first argument. */
export function readProcessName({ pid, name }: ProcessEntry, procRoot: string): string {
  if (name !== NODE_MAIN_THREAD) return name
  const [path = ''] = readProcessArguments(pid, MAX_PATH_BYTES, procRoot)?.toString('utf8').split('\0') ?? []
  return basename(path) || name
}

/** The first number of a line of /proc/PID/status; 0 when the line is missing. */
const parseNumber = (status: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0)

type Decision = { startTime: number; name: string; isMember: boolean }
type MembershipTest = (entry: ProcessEntry, table: ReadonlyMap<number, ProcessEntry>) => boolean

/**
 * A process belongs to the box when it has the box's uid, the box's environment variable or a parent in the box. It still
 * belongs to the box when the parent exits. Other processes are checked again when their name changes: between fork and
 * execve, a process has the environment of its parent.
 */
function createMembershipTest({ boxId, ownUid }: Membership, procRoot: string): MembershipTest {
  let decisions = new Map<number, Decision>()
  let currentTable: ReadonlyMap<number, ProcessEntry> | undefined

  const findDecision = ({ pid, startTime, name }: ProcessEntry): boolean | undefined => {
    const known = decisions.get(pid)
    if (known?.startTime !== startTime) return undefined
    return known.isMember || known.name === name ? known.isMember : undefined
  }
  const hasMarker = ({ pid }: ProcessEntry): boolean =>
    hasEnvironmentVariable(pid, `BOXWOOD_BOX=${boxId}`, procRoot) ||
    (ownUid !== null && parseNumber(readProcessStatus(pid, procRoot) ?? '', 'Uid') === ownUid)

  return (entry, table) => {
    if (table !== currentTable) {
      currentTable = table
      decisions = new Map([...decisions].filter(([pid]) => table.has(pid)))
    }
    // A set, because entries that were read at different times can form a cycle.
    const undecided = new Set<ProcessEntry>()
    let isMember = false
    let ancestor: ProcessEntry | undefined = entry
    while (ancestor !== undefined && !undecided.has(ancestor)) {
      const known = findDecision(ancestor)
      if (known === undefined) undecided.add(ancestor)
      isMember = known ?? hasMarker(ancestor)
      if (known !== undefined || isMember) break
      ancestor = findParent(ancestor, table)
    }
    for (const { pid, startTime, name } of undecided) decisions.set(pid, { startTime, name, isMember })
    return isMember
  }
}

function findParent({ ppid, startTime }: ProcessEntry, table: ReadonlyMap<number, ProcessEntry>) {
  const parent = table.get(ppid)
  // When the parent has exited, a later process may have its pid.
  return parent !== undefined && parent.startTime <= startTime ? parent : undefined
}
