// Kills processes of the probes with which a coordinator finds the isolation of local boxes.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** `some`: at most two processes of all probes. `all`: each probe, as often as it is repeated. */
export type KillMode = 'none' | 'some' | 'all'

/** Part of the command line of each probe: its directory, or the filter that it loads. */
const PROBE = /\/\.probe-|keyring-filter|slirp4netns/
const MAX_SOME = 2
/** A probe takes about 100 ms. */
const POLL_MS = 5
const KILL_PROBABILITY = 0.15

/** Runs until the signal is aborted. Resolves with the number of killed processes. */
export async function killProbes(
  coordinatorPid: number,
  { mode, random, signal }: { mode: KillMode; random: () => number; signal: AbortSignal },
): Promise<number> {
  let killed = 0
  while (mode !== 'none' && !signal.aborted && (mode === 'all' || killed < MAX_SOME)) {
    for (const probe of listChildren(coordinatorPid).filter(isProbe)) {
      if (mode === 'some' && random() > KILL_PROBABILITY) continue
      const processes = [probe, ...listDescendants(probe)]
      const victim = mode === 'all' ? probe : (processes[Math.floor(random() * processes.length)] ?? probe)
      if (sendKill(victim)) killed += 1
    }
    await delay(POLL_MS)
  }
  return killed
}

/** The children of all threads. */
function listChildren(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

const listDescendants = (pid: number): number[] =>
  listChildren(pid).flatMap((child) => [child, ...listDescendants(child)])

function isProbe(pid: number): boolean {
  try {
    return PROBE.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  } catch {
    return false
  }
}

/** Returns false when the process has exited, or belongs to another user. */
function sendKill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}
