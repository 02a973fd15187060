// Ends a command with everything it started, also what moved to a session of its own.
import { setTimeout as delay } from 'node:timers/promises'
import { PROCESS_ID_VARIABLE } from './environment.ts'
import {
  assigns,
  hasNoArguments,
  isDead,
  listPids,
  type ProcessEntry,
  readEnvironment,
  readProcess,
} from './process-table.ts'

export type Tree = {
  /** The leader of the command's own session and process group. */
  pid: number
  /** Its start, in ticks since the boot. The caller who leaves it out vouches that the pid is not reaped yet. */
  startTime?: number
  /** The value of BOXWOOD_PROCESS_ID in the environment of everything the command starts. */
  processId: string
  /** Belongs to no tree, but all of its descendants do: the runner of a detached command, who adopts what it orphans. */
  keeper?: { pid: number; startTime: number }
}
type KnownTree = Required<Omit<Tree, 'keeper'>> & Pick<Tree, 'keeper'>

export type Termination = {
  /** The strongest signal that was needed; null when nothing was left to end. */
  signal: 'TERM' | 'KILL' | null
  /** Processes that outlived KILL (in an uninterruptible call, or of another user). */
  survivors: number[]
}

/** How long a process may tidy up between TERM and KILL. */
export const TERMINATE_GRACE_MS = 2000
/** After KILL only a process in an uninterruptible call is still there; nobody waits longer for it. */
const KILL_DEADLINE_MS = 3000
const FIRST_LOOK_MS = 2
const SLOWEST_LOOK_MS = 50
/** The last of them some 15 ms after the first. */
const EMPTY_LOOKS = 4

/**
 * TERM to the whole tree, KILL to what is left after the grace, repeated until nothing is left.
 * @param graceMs between TERM and KILL
 */
export async function terminateTree(
  tree: Tree,
  graceMs = TERMINATE_GRACE_MS,
  procRoot = '/proc',
): Promise<Termination> {
  const known: KnownTree = {
    ...tree,
    startTime: tree.startTime ?? readProcess(tree.pid, procRoot)?.startTime ?? 0,
  }
  const asked = new Set<string>()
  const look = (onMarked?: (member: ProcessEntry) => void) => findTree(known, onMarked, procRoot)
  let members = await untilGone(look, graceMs, (member) => {
    const name = `${member.pid}@${member.startTime}`
    if (asked.has(name)) return
    asked.add(name)
    signal(member.pid, 'SIGTERM')
    // A stopped process takes TERM only once it goes on.
    if (member.state === 'T') signal(member.pid, 'SIGCONT')
  })
  if (members.length === 0) return { signal: asked.size === 0 ? null : 'TERM', survivors: [] }

  const kill = ({ pid }: ProcessEntry) => signal(pid, 'SIGKILL')
  members = await untilGone(
    () => look(kill),
    KILL_DEADLINE_MS,
    (member, all) => {
      // A group dies at one stroke, so a process that only forks cannot run away from the list.
      if (member.pgrp === known.pid || all.some((other) => other.pid === member.pgrp)) {
        signal(-member.pgrp, 'SIGKILL')
      }
      kill(member)
    },
  )
  return { signal: 'KILL', survivors: members.map((member) => member.pid) }
}

/**
 * Looks again and again, hands each member to `end`, and answers who is still there at the deadline.
 *
 * A look takes a while, and in it a process can pass for gone: its parent ended before it was looked at, or it moved to a
 * new pid. So only several looks in a row that find nobody, and nobody who cannot be told yet, mean that nobody is there.
 */
async function untilGone(
  look: () => Look,
  deadlineMs: number,
  end: (member: ProcessEntry, all: ProcessEntry[]) => void,
): Promise<ProcessEntry[]> {
  let waited = 0
  let emptyLooks = 0
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 2, SLOWEST_LOOK_MS)) {
    const { members, uncertain } = look()
    const empty = members.length === 0 && !uncertain
    emptyLooks = empty ? emptyLooks + 1 : 0
    if (emptyLooks === EMPTY_LOOKS || (!empty && waited >= deadlineMs)) return members
    if (emptyLooks === 1) pause = FIRST_LOOK_MS
    for (const member of members) end(member, members)
    await delay(pause)
    waited += pause
  }
}

export type Look = {
  /** The oldest first. */
  members: ProcessEntry[]
  /** There is somebody of whom it will be seen only later: one that is just becoming another program. */
  uncertain: boolean
}

/**
 * The living processes of a command: its session and group, all descendants of those, and every process that
 * carries its mark, with their descendants.
 *
 * @param onMarked told of each that carries the mark, as soon as it is seen
 *
 * What escapes where there is no keeper: a process that left the session, lost its parent and started with a cleaned
 * environment.
 */
export function findTree(
  tree: KnownTree,
  onMarked: (member: ProcessEntry) => void = () => {},
  procRoot = '/proc',
): Look {
  const mark = `${PROCESS_ID_VARIABLE}=${tree.processId}`
  const all: ProcessEntry[] = []
  const blank: ProcessEntry[] = []
  const members = new Map<number, ProcessEntry>()
  // The newest first, and told of at once: one that starts another and ends, again and again, is only there for a moment.
  for (const pid of listPids(procRoot).reverse()) {
    const entry = pid === process.pid ? undefined : readProcess(pid, procRoot)
    // Nothing that is older than the command belongs to it; this also spares reading most environments.
    if (entry === undefined || entry.startTime < tree.startTime) continue
    all.push(entry)
    if (isDead(entry)) continue
    const environment = readEnvironment(pid, procRoot)
    if (assigns(environment, mark)) {
      members.set(pid, entry)
      onMarked(entry)
    } else if (environment === '' && hasNoArguments(entry, procRoot)) blank.push(entry)
  }
  const leader = all.find((entry) => entry.pid === tree.pid)
  // A group's number is not given to a new process while the group has members: only a leader can be a stranger.
  const strangers = leader !== undefined && tree.startTime !== 0 && leader.startTime !== tree.startTime
  for (const entry of strangers || tree.startTime === 0 ? [] : all) {
    const inGroup = entry.pgrp === tree.pid || entry.session === tree.pid || entry.pid === tree.pid
    if (inGroup) members.set(entry.pid, entry)
  }
  const { keeper } = tree
  // Older than the command, by a tick or two at times.
  const keeps = keeper && readProcess(keeper.pid, procRoot)?.startTime === keeper.startTime
  if (keeps) for (const entry of all) if (entry.ppid === keeper.pid) members.set(entry.pid, entry)
  for (let before = -1; before !== members.size; ) {
    before = members.size
    for (const entry of all) if (members.has(entry.ppid)) members.set(entry.pid, entry)
  }
  // The oldest first: a shell that is asked to end before its child is runs its trap, and does not just see the child go.
  const living = [...members.values()].filter((entry) => !isDead(entry))
  return {
    members: living.sort((a, b) => a.startTime - b.startTime || a.pid - b.pid),
    uncertain: blank.some(({ pid }) => !members.has(pid)),
  }
}

/** The process may end between the look and the signal, and one of another user is not ours to signal. */
function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
  }
}
