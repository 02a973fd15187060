// Archives the files of the stopped boxes of one region, without a coordinator. Needs no isolation level.
import type { Region } from '../../../shared/tiers.ts'
import { createArchives } from '../parts/archives/archives.ts'
import type { Provider } from '../provider.ts'
import { probeCgroups } from './cgroups.ts'
import { boxPaths } from './machine-file.ts'
import { createMachines, type MachinesOptions } from './machines.ts'
import { getArchivesDir, getBoxesDir, getRegionDir } from './region-directories.ts'
import { ARCHIVE_ROOTS } from './restore-machine.ts'

export type Archiver = Pick<Provider, 'name' | 'capture' | 'removeArchive' | 'close'> &
  Required<Pick<Provider, 'holdArchives'>>

export async function createArchiver({
  dataDir,
  log,
  region,
}: Pick<MachinesOptions, 'dataDir' | 'log'> & { region: Region }): Promise<Archiver> {
  const regionDir = getRegionDir(dataDir, region)
  const boxesDir = getBoxesDir(regionDir)
  const machines = createMachines({ dataDir, boxesDir, log, cgroups: await probeCgroups() })
  const archives = createArchives({ dir: getArchivesDir(regionDir), log })
  return {
    name: 'local',
    async capture(boxId, archive, contents, signal) {
      const machine = await machines.load(boxId)
      if (machine === null) throw new Error('The machine of the box does not exist.')
      if (machine.init !== null) throw new Error('The box is running without a coordinator. Run `box down`.')
      const files = { dir: boxPaths(boxesDir, boxId).dir, roots: ARCHIVE_ROOTS[contents], uid: machine.uid }
      return await archives.capture(files, archive, { signal })
    },
    removeArchive: (archive) => archives.remove(archive),
    holdArchives: () => archives.hold(),
    async close() {
      await archives.close()
      await machines.close()
    },
  }
}
