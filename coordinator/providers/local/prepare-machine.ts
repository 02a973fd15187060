// Creates the file and the directories of a machine.
import { mkdir } from 'node:fs/promises'
import type { Capacity } from '../../../shared/tiers.ts'
import { PermanentProviderError } from '../provider.ts'
import { describeFailure } from './describe-isolation.ts'
import { chooseUid, createBoxDirectories, isRoot } from './directories.ts'
import type { LocalHost } from './host.ts'
import type { Level } from './levels/choose-level.ts'
import { boxPaths, type LocalIsolation, type Machine, writeMachine } from './machine-file.ts'
import type { Machines } from './machines.ts'
import { emptyMachine } from './new-machine.ts'

/** The machines of one region. */
export type RegionMachines = { host: LocalHost; boxesDir: string; machines: Machines; capacity: Capacity }

/** The isolation of the machines that are started now. Throws PermanentProviderError when no level works. */
export function requireIsolation({ choice, cgroups }: LocalHost): LocalIsolation {
  if (choice.level === null) throw new PermanentProviderError(describeFailure(choice))
  return { level: choice.level, limits: cgroups.controllers, network: choice.network }
}

/** Returns a machine that has never been started. */
export async function newMachine(host: LocalHost, boxId: string): Promise<Machine> {
  return emptyMachine(boxId, await chooseMachineUid(host))
}

/**
 * Creates the machine unless it exists, and its missing directories.
 * @param level the level of the next start
 */
export async function prepareMachine(
  { host, boxesDir, machines }: RegionMachines,
  boxId: string,
  level: Level,
): Promise<Machine> {
  const paths = boxPaths(boxesDir, boxId)
  const existing = await machines.load(boxId)
  if (!isRoot && existing?.uid != null) {
    throw new PermanentProviderError(
      'The box was created by a coordinator that ran as root. Run the coordinator as root.',
    )
  }
  const machine = existing ?? (await newMachine(host, boxId))
  const uid = machine.uid ?? (await chooseMachineUid(host))
  await mkdir(paths.dir, { recursive: true })
  // Record the uid before files with this uid are created, so that no other box gets the same uid.
  await writeMachine(paths, { ...machine, uid })
  const currentLevel = machine.init === null ? level : machine.level
  await createBoxDirectories(paths, uid, currentLevel === 'process')
  return { ...machine, uid }
}

/** A user that no box has; null: the coordinator's user. */
export const chooseMachineUid = async (host: LocalHost): Promise<number | null> =>
  isRoot ? chooseUid(await host.listUsedUids()) : null
