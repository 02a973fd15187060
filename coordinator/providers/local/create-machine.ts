// Creates and removes the machine of a box.
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { unlinkCompileCache } from '../../agents/bundles/compile-cache.ts'
import type { MachineInfo } from '../provider.ts'
import { removeTree } from './directories.ts'
import { moveMachineCopy, takeMachineCopy } from './machine-copies.ts'
import { boxPaths, type Machine } from './machine-file.ts'
import { newMachine, prepareMachine, type RegionMachines, requireIsolation } from './prepare-machine.ts'
import { fillMachine, type MachineSource, restoreMachine } from './restore-machine.ts'
import { isUntouched } from './warm-machine.ts'

/**
 * Creates a stopped machine unless one exists. A warm machine stays as it is, or gets the files.
 * @param source null: the machine has no files
 */
export async function createMachine(
  region: RegionMachines,
  boxId: string,
  source: MachineSource | null,
  signal?: AbortSignal,
): Promise<MachineInfo> {
  const { host, boxesDir, machines } = region
  const isolation = requireIsolation(host)
  const existing = await machines.load(boxId)
  if (existing?.warm !== undefined) {
    const isUsable = isDeepStrictEqual(existing.isolation, isolation) && (await isUntouched(region, existing))
    if (await useWarmMachine(boxesDir, existing, isUsable, source, signal))
      return { isolation: existing.isolation }
    host.options.log.debug({ boxId }, 'a warm machine is replaced')
    await removeMachine(region, boxId)
  }
  if (source !== null && (await machines.load(boxId)) === null) {
    const isCopy = await takeMachineCopy(boxesDir, boxId, source.key)
    if (!isCopy) await restoreMachine(boxesDir, await newMachine(host, boxId), source, signal)
  }
  const machine = await prepareMachine(region, boxId, isolation.level)
  return { isolation: machine.isolation ?? isolation }
}

/** Returns false when the machine must be replaced. */
async function useWarmMachine(
  boxesDir: string,
  machine: Machine,
  isUsable: boolean,
  source: MachineSource | null,
  signal?: AbortSignal,
): Promise<boolean> {
  if (source === null) return isUsable
  const isMoved = await moveMachineCopy(boxesDir, machine, source.key, isUsable)
  if (isMoved !== null) return isMoved
  // An interrupted restore has changed the machine: the next one replaces it.
  return isUsable && fillMachine(boxesDir, machine, source, signal)
}

/** Terminates the processes of the machine, and removes its files. No-op when it is absent. */
export async function removeMachine(
  { host, boxesDir, machines }: RegionMachines,
  boxId: string,
): Promise<void> {
  const { dir } = boxPaths(boxesDir, boxId)
  const uid = (await machines.load(boxId))?.uid
  const state = await machines.inspect(boxId)
  const isStopped = state === 'stopped' || state === 'absent'
  // After a move, the processes of the box belong to its machine in another region.
  if (!isStopped || !host.isInOtherRegion(boxId, boxesDir)) await machines.stopExisting(boxId)
  await removeTree(dir)
  if (uid != null) await unlinkCompileCache(dirname(host.runtimeDir), uid)
  if (state !== 'absent') host.options.log.debug({ boxId }, 'machine removed')
}
