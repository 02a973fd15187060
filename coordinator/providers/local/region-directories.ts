// The directories of the regions. The default region uses the data directory itself.

import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DEFAULT_REGION, REGIONS, type Region } from '../../../shared/tiers.ts'

export const getRegionDir = (dataDir: string, region: Region): string =>
  region === DEFAULT_REGION ? dataDir : join(dataDir, 'regions', region)

export const getBoxesDir = (regionDir: string): string => join(regionDir, 'boxes')

/** The archive store of the regions of an engine. @param provider the name of the provider */
export const getEngineArchivesDir = (dataDir: string, provider: string): string =>
  join(dataDir, provider, 'archives')

export const getArchivesDir = (regionDir: string): string => join(regionDir, 'archives')

/** The regions that have had boxes on this machine. */
export const listUsedRegions = (dataDir: string): Region[] =>
  REGIONS.filter((region) => existsSync(getBoxesDir(getRegionDir(dataDir, region))))

/** The regions with local boxes or archives: they cannot get another provider. */
export const listOccupiedRegions = (dataDir: string): Region[] =>
  REGIONS.filter((region) => {
    const regionDir = getRegionDir(dataDir, region)
    const archivesDir = getArchivesDir(regionDir)
    return (
      listNames(getBoxesDir(regionDir)).length > 0 ||
      listNames(archivesDir).some(
        (workspace) => listNames(join(archivesDir, workspace, 'archives')).length > 0,
      )
    )
  })

/** The names in a directory that may not exist. */
function listNames(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

/** Box users may enter the directories, and cannot list the boxes: boxes at level process use their own paths. */
export async function createBoxesDir(dataDir: string, region: Region): Promise<string> {
  const regionDir = getRegionDir(dataDir, region)
  const boxesDir = getBoxesDir(regionDir)
  await mkdir(boxesDir, { recursive: true })
  if (regionDir !== dataDir) for (const dir of [dirname(regionDir), regionDir]) await chmod(dir, 0o711)
  await chmod(boxesDir, 0o711)
  return boxesDir
}
