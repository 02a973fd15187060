// Terminates the process tree of a command, including processes that moved to a session of their own.
import { setTimeout as delay } from 'node:timers/promises'
import {
  hasAssignment,
  hasNoArguments,
  isDead,
  listPids,
  PROCESS_ID_VARIABLE,
  type ProcessEntry,
  readProcess,
  readProcessEnvironment,
} from '../process-table.ts'

export type Tree = {
  /** The command's process: leader of its session and process group. */
  pid: number
  /** Its start time in ticks since boot. Optional when the caller guarantees that the process is not reaped yet. */
  startTime?: number
  /** The value of BOXWOOD_PROCESS_ID in the environment of the command and its descendants. */
  processId: string
  /**
   * Parent of the command's orphaned descendants (PR_SET_CHILD_SUBREAPER). The subreaper itself is not a member of the
   * tree.
   */
  subreaper?: { pid: number; startTime: number }
}
type KnownTree = Required<Omit<Tree, 'subreaper'>> & Pick<Tree, 'subreaper'>

export type Termination = {
  /** The strongest signal that was needed; null when the tree was empty. */
  signal: 'TERM' | 'KILL' | null
  /** Pids that survived SIGKILL: in an uninterruptible system call, or of another user. */
  survivors: number[]
}

/** The message of the API error when the command's own process is among the survivors. */
export const SURVIVED_MESSAGE =
  'The command survived SIGKILL: it is blocked in the kernel or runs as another user. Try again later.'

/** Time between SIGTERM and SIGKILL. */
export const TERMINATE_GRACE_MS = 2000
/** After SIGKILL only a process in an uninterruptible system call is left: stop waiting then. */
const KILL_DEADLINE_MS = 3000
const MIN_SCAN_INTERVAL_MS = 2
const MAX_SCAN_INTERVAL_MS = 50
/** Consecutive scans without a member, some 15 ms apart in all, that count as an empty tree. */
const EMPTY_SCANS = 4

/**
 * Sends SIGTERM to the whole tree, and SIGKILL to the processes that are left after the grace period.
 * @param graceMs between SIGTERM and SIGKILL
 */
export async function terminateTree(
  tree: Tree,
  graceMs = TERMINATE_GRACE_MS,
  procRoot = '/proc',
): Promise<Termination> {
  const known = withStartTime(tree, procRoot)
  const hasSignalled = await requestExit(known, 'SIGTERM', graceMs, procRoot)
  if (hasSignalled !== null) return { signal: hasSignalled ? 'TERM' : null, survivors: [] }

  const kill = ({ pid }: ProcessEntry) => sendSignal(pid, 'SIGKILL')
  const members = await signalUntilEmpty(
    () => findTreeMembers(known, kill, procRoot),
    KILL_DEADLINE_MS,
    (member, all) => {
      // Signalling a group is atomic, so a process that forks continuously cannot escape between two scans.
      if (member.pgrp === known.pid || all.some((other) => other.pid === member.pgrp))
        sendSignal(-member.pgrp, 'SIGKILL')
      kill(member)
    },
  )
  return { signal: 'KILL', survivors: members.map((member) => member.pid) }
}

/**
 * Like terminateTree(), but sends SIGHUP first: an interactive shell ignores SIGTERM.
 * @param graceMs after SIGHUP, and after SIGTERM
 */
export async function hangUpTree(
  tree: Tree,
  graceMs = TERMINATE_GRACE_MS,
): Promise<Omit<Termination, 'signal'> & { signal: 'HUP' | Termination['signal'] }> {
  const hasSignalled = await requestExit(withStartTime(tree, '/proc'), 'SIGHUP', graceMs, '/proc')
  if (hasSignalled !== null) return { signal: hasSignalled ? 'HUP' : null, survivors: [] }
  return terminateTree(tree, graceMs)
}

const withStartTime = (tree: Tree, procRoot: string): KnownTree => ({
  ...tree,
  startTime: tree.startTime ?? readProcess(tree.pid, procRoot)?.startTime ?? 0,
})

/**
 * Sends a signal once to each process of the tree.
 * @returns whether a process was signalled; null when processes are left after the grace period
 */
async function requestExit(
  tree: KnownTree,
  signal: 'SIGHUP' | 'SIGTERM',
  graceMs: number,
  procRoot: string,
): Promise<boolean | null> {
  const signalled = new Set<string>()
  const scan = () => findTreeMembers(tree, undefined, procRoot)
  const members = await signalUntilEmpty(scan, graceMs, (member) => {
    const key = `${member.pid}@${member.startTime}`
    if (signalled.has(key)) return
    signalled.add(key)
    sendSignal(member.pid, signal)
    // A stopped process handles the signal only after SIGCONT.
    if (member.state === 'T') sendSignal(member.pid, 'SIGCONT')
  })
  return members.length === 0 ? signalled.size > 0 : null
}

/**
 * Scans repeatedly and calls `signal` for each member. Returns the members that are left at the deadline.
 *
 * A scan is not atomic: a process can be missed because its parent exited before it was read, or because it forked to a
 * new pid. Only several consecutive scans without members, and without inconclusive processes, mean an empty tree.
 */
async function signalUntilEmpty(
  scan: () => TreeScan,
  deadlineMs: number,
  signal: (member: ProcessEntry, all: ProcessEntry[]) => void,
): Promise<ProcessEntry[]> {
  let waitedMs = 0
  let emptyScans = 0
  for (let pauseMs = MIN_SCAN_INTERVAL_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_SCAN_INTERVAL_MS)) {
    const { members, inconclusive } = scan()
    const isEmpty = members.length === 0 && !inconclusive
    emptyScans = isEmpty ? emptyScans + 1 : 0
    if (emptyScans === EMPTY_SCANS || (!isEmpty && waitedMs >= deadlineMs)) return members
    if (emptyScans === 1) pauseMs = MIN_SCAN_INTERVAL_MS
    for (const member of members) signal(member, members)
    await delay(pauseMs)
    waitedMs += pauseMs
  }
}

export type TreeScan = {
  /** Oldest first. */
  members: ProcessEntry[]
  /** A process in the middle of execve was seen, which can be assigned to a tree only by a later scan. */
  inconclusive: boolean
}

/**
 * Finds the live processes of a command: its session and process group, all processes that carry its marker (an
 * environment variable), children of the subreaper, and the descendants of all these.
 *
 * Without a subreaper, a process escapes that left the session, lost its parent and cleared its environment.
 *
 * @param onMarked called for each process with the marker as soon as it is read
 */
export function findTreeMembers(
  tree: KnownTree,
  onMarked: (member: ProcessEntry) => void = () => {},
  procRoot = '/proc',
): TreeScan {
  const marker = `${PROCESS_ID_VARIABLE}=${tree.processId}`
  const all: ProcessEntry[] = []
  const inExecve: ProcessEntry[] = []
  const members = new Map<number, ProcessEntry>()
  // Newest first, with an immediate callback: a process that repeatedly forks and exits is short-lived.
  for (const pid of listPids(procRoot).reverse()) {
    const entry = pid === process.pid ? undefined : readProcess(pid, procRoot)
    // Processes older than the command are not part of it. Skipping them saves most environment reads.
    if (entry === undefined || entry.startTime < tree.startTime) continue
    all.push(entry)
    if (isDead(entry)) continue
    const environment = readProcessEnvironment(pid, procRoot)
    if (hasAssignment(environment, marker)) {
      members.set(pid, entry)
      onMarked(entry)
    } else if (environment === '' && hasNoArguments(entry, procRoot)) inExecve.push(entry)
  }
  const leader = all.find((entry) => entry.pid === tree.pid)
  // The kernel does not reuse a group's id while the group has members: only a leader with another start time is unrelated.
  const isReusedPid = leader !== undefined && tree.startTime !== 0 && leader.startTime !== tree.startTime
  for (const entry of isReusedPid || tree.startTime === 0 ? [] : all) {
    const isInGroup = entry.pgrp === tree.pid || entry.session === tree.pid || entry.pid === tree.pid
    if (isInGroup) members.set(entry.pid, entry)
  }
  const { subreaper } = tree
  // Read separately: the subreaper is older than the command, so the loop above may have skipped it.
  const hasSubreaper = subreaper && readProcess(subreaper.pid, procRoot)?.startTime === subreaper.startTime
  if (hasSubreaper) for (const entry of all) if (entry.ppid === subreaper.pid) members.set(entry.pid, entry)
  for (let sizeBefore = -1; sizeBefore !== members.size; ) {
    sizeBefore = members.size
    for (const entry of all) if (members.has(entry.ppid)) members.set(entry.pid, entry)
  }
  // Oldest first: a shell that gets SIGTERM before its child runs its trap instead of just seeing the child exit.
  const live = [...members.values()].filter((entry) => !isDead(entry))
  return {
    members: live.sort((a, b) => a.startTime - b.startTime || a.pid - b.pid),
    inconclusive: inExecve.some(({ pid }) => !members.has(pid)),
  }
}

/** False for ESRCH (exited since the scan) and EPERM (process of another user). @param pid negative: a process group */
export function sendSignal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
    return false
  }
}
