// Terminates every process of a box: the signal that stops its init, SIGTERM, a grace period, then SIGKILL until none is left.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  INIT_STOP_SIGNAL,
  isAlive,
  type ProcessIdentity,
  readArgv,
  readStat,
  sendSignal,
} from '../parts/proc.ts'
import { listProcesses } from './box-processes.ts'
import { killCgroups } from './cgroups.ts'
import type { BoxPaths, Machine } from './machine-file.ts'
import { continueProcesses } from './pause.ts'
import { runCommand } from './run-command.ts'

const POLL_MS = 25
/** After SIGKILL only the kernel can delay a process's exit. */
const KILL_TIMEOUT_MS = 10_000
const KILL_USER_TIMEOUT_MS = 1_000

/**
 * Throws when processes survive SIGKILL (in uninterruptible sleep).
 * @param killTimeoutMs how long to repeat SIGKILL.
 */
export async function terminateProcesses(
  paths: BoxPaths,
  machine: Machine,
  graceMs: number,
  killTimeoutMs = KILL_TIMEOUT_MS,
): Promise<void> {
  const listRemaining = () => listProcesses(paths, machine)
  let remaining = listRemaining()
  if (remaining.length > 0) sendTerm(machine, remaining)
  // Frozen and paused processes handle the signal now. A frozen process of cgroup version 1 cannot even be killed.
  continueProcesses(paths, machine)
  const graceDeadline = performance.now() + graceMs
  while (remaining.length > 0 && performance.now() < graceDeadline) {
    await sleep(POLL_MS)
    // A scan reads all of /proc.
    if (!remaining.some(isAlive)) remaining = listRemaining()
  }
  await killProcesses(machine, listRemaining, killTimeoutMs)
}

/**
 * Kills until two scans find nothing. A scan can miss a process that exits after it has forked its successor, so the
 * kernel first kills all processes at once, by cgroup and by uid, also when a scan has found none.
 */
async function killProcesses(
  machine: Machine,
  listRemaining: () => ProcessIdentity[],
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (let emptyScans = 0; emptyScans < 2; ) {
    killCgroups(machine.cgroups)
    const isUserKilled = machine.uid === null || process.getuid?.() !== 0 || (await killUser(machine.uid))
    const remaining = listRemaining()
    emptyScans = isUserKilled && remaining.length === 0 ? emptyScans + 1 : 0
    if (emptyScans > 0) continue
    if (performance.now() > deadline) {
      const pids = remaining.map(({ pid }) => pid).join(', ') || 'they fork and exit'
      throw new Error(
        `Processes of the box survived SIGKILL: ${pids}. Check the disks and network file systems that they use.`,
      )
    }
    // When the init of a PID namespace exits, the kernel kills all of its processes, including ones not listed here.
    for (const process of remaining) sendSignal(process, 'SIGKILL')
    await sleep(POLL_MS)
  }
}

/**
 * Kills all processes of the box's user at once. Only root can change to this user. Returns false when a process of the
 * box has killed or stopped the command before.
 */
async function killUser(uid: number): Promise<boolean> {
  const signal = AbortSignal.timeout(KILL_USER_TIMEOUT_MS)
  // kill fails when there is no other process.
  const command = ['/bin/sh', '-c', 'kill -s KILL -- -1 2>/dev/null; exit 0']
  return await runCommand(command, { user: { uid, gid: uid }, signal }).then(
    () => true,
    () => false,
  )
}

function sendTerm(machine: Machine, processes: ProcessIdentity[]): void {
  const { init } = machine
  const initAlive = init !== null && isAlive(init)
  if (initAlive) sendSignal(init, 'SIGTERM')
  if (initAlive && machine.level !== 'process') {
    // An init that is pid 1 sends TERM to every process of its namespace. That of an earlier version has done so after the TERM.
    sendSignal(init, INIT_STOP_SIGNAL)
    return
  }
  for (const process of processes) {
    const isAgent = initAlive && readStat(process.pid)?.ppid === init.pid && !isInitSleep(process.pid)
    // An init that is a plain process forwards SIGTERM to the agent, which may treat a second one as "exit now".
    if (process.pid !== init?.pid && !isAgent) sendSignal(process, 'SIGTERM')
  }
}

/** Between restarts of the agent the init runs `sleep`. */
const isInitSleep = (pid: number): boolean => readArgv(pid)[0] === 'sleep'
