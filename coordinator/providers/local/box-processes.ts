// Finds the processes of a box on this machine.

import {
  hasEnvironmentEntry,
  isAlive,
  listPids,
  type ProcessIdentity,
  readIdentity,
  readStat,
  readUid,
} from '../parts/proc.ts'
import { listCgroupPids } from './cgroups.ts'
import { environmentMarker } from './environment.ts'
import { findLauncher } from './launch.ts'
import { type BoxPaths, isBoxUid, type Machine } from './machine-file.ts'

/**
 * Finds the box's processes by several criteria: the init and its launcher; membership in the box's cgroups; the box's
 * uid; the environment marker; and descent from any of these.
 */
export function listProcesses(paths: BoxPaths, machine: Machine): ProcessIdentity[] {
  const pids = new Set(listCgroupPids(machine.cgroups))
  for (const root of [machine.init, findLauncher(paths)]) {
    if (root !== null && isAlive(root)) pids.add(root.pid)
  }
  const parents = new Map<number, number>()
  for (const pid of listPids()) {
    const stat = readStat(pid)
    if (stat === null) continue
    parents.set(pid, stat.ppid)
    if (belongsToBox(pid, machine)) pids.add(pid)
  }
  addDescendants(pids, parents)
  pids.delete(process.pid)
  return [...pids].map(readIdentity).filter((identity) => identity !== null)
}

/** Where the box has its own uid, the environment marker finds only its launcher, which runs as root. */
function belongsToBox(pid: number, { uid, boxId }: Machine): boolean {
  const owner = readUid(pid)
  if (owner === null) return false
  if (uid !== null && isBoxUid(owner)) return owner === uid
  return hasEnvironmentEntry(pid, environmentMarker(boxId))
}

function addDescendants(pids: Set<number>, parents: Map<number, number>): void {
  for (let previousSize = -1; previousSize !== pids.size; ) {
    previousSize = pids.size
    for (const [pid, parent] of parents) if (pids.has(parent)) pids.add(pid)
  }
}
