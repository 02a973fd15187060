// Recovers what is needed to stop, delete and restart a box whose machine file is damaged or missing.
import { lstat } from 'node:fs/promises'
import { hasEnvironmentEntry, listPids, readUid } from '../parts/proc.ts'
import { environmentMarker } from './environment.ts'
import { type BoxPaths, isBoxUid, type Machine } from './machine-file.ts'

/** @param cgroups the directories in which the cgroups of the box would be. */
export async function recoverMachine(paths: BoxPaths, boxId: string, cgroups: string[]): Promise<Machine> {
  const owner = (await lstat(paths.home).catch(() => null))?.uid
  const uid = owner !== undefined && isBoxUid(owner) ? owner : findUidOfProcesses(boxId)
  return { boxId, uid, level: null, isolation: null, init: null, cgroups }
}

/** The uid of the box's running processes; null when there are none, or when boxes have no uid of their own. */
function findUidOfProcesses(boxId: string): number | null {
  for (const pid of listPids()) {
    const uid = readUid(pid)
    if (uid !== null && isBoxUid(uid) && hasEnvironmentEntry(pid, environmentMarker(boxId))) return uid
  }
  return null
}
