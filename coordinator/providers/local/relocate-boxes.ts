// Moves boxes into the directory of their region. Earlier versions had all boxes in one directory.
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { DEFAULT_REGION, type Region } from '../../../shared/tiers.ts'
import { probeCgroups } from './cgroups.ts'
import { boxPaths } from './machine-file.ts'
import { createMachines, type MachinesOptions } from './machines.ts'
import { createBoxesDir, getBoxesDir, getRegionDir } from './region-directories.ts'

/**
 * The processes of a box with mount namespaces continue: their mounts stay valid. A box at level process uses host paths and
 * is stopped; the start of the coordinator starts it again.
 */
export async function relocateBoxes(
  boxes: readonly { id: string; region: Region }[],
  options: Omit<MachinesOptions, 'boxesDir' | 'cgroups'>,
): Promise<void> {
  const { dataDir, log } = options
  const defaultDir = getBoxesDir(getRegionDir(dataDir, DEFAULT_REGION))
  const misplaced = boxes.filter(
    ({ id, region }) => region !== DEFAULT_REGION && existsSync(boxPaths(defaultDir, id).dir),
  )
  if (misplaced.length === 0) return
  const machines = createMachines({ ...options, boxesDir: defaultDir, cgroups: await probeCgroups() })
  for (const { id, region } of misplaced) {
    const target = boxPaths(await createBoxesDir(dataDir, region), id).dir
    // A move was interrupted: both directories have the files.
    if (existsSync(target)) continue
    const machine = await machines.load(id)
    if (machine?.level === 'process') await machines.stopExisting(id)
    await rename(boxPaths(defaultDir, id).dir, target)
    log.debug({ boxId: id, region }, 'moved a box into the directory of its region')
  }
}
