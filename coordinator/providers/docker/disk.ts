// The disk that the boxes of an engine share: its space, and how much of it a box uses.
import { statSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { EngineTimeoutError, EngineUnavailableError, hasStatus } from '../engine-http/errors.ts'
import { measureTree, readSpace } from '../parts/disk-usage.ts'
import type { DiskUsage, SharedDisk } from '../provider.ts'
import type { Engine } from './engine.ts'
import { getContainerName, getHomeVolume, getStateVolume } from './names.ts'

type Inspected = {
  SizeRw?: number
  /** Absent with storage drivers other than overlay. */
  GraphDriver?: { Data?: { UpperDir?: string } | null } | null
  Mounts?: { Name?: string; Source?: string }[]
}

const NOTHING: DiskUsage = { bytes: 0, inodes: 0 }
const UNKNOWN = Number.MAX_SAFE_INTEGER

/** @param getRootDir the directory of the engine, if it is on this machine */
export function createEngineDisk(engine: Engine, getRootDir: () => string | null): SharedDisk {
  return {
    /** The same name as for the local provider, when the boxes of both share a file system. */
    get fileSystem() {
      const dir = getRootDir()
      const device = dir === null ? undefined : statSync(dir, { throwIfNoEntry: false })?.dev
      return device === undefined ? engine.kind : `local ${device}`
    },

    async measure(boxId, signal) {
      try {
        return await measureMachine(engine, boxId, signal)
      } catch (error) {
        const isSilent = error instanceof EngineUnavailableError || error instanceof EngineTimeoutError
        if (isSilent) return null
        if (hasStatus(error, 404)) return NOTHING
        throw error
      }
    },

    async readSpace() {
      const dir = getRootDir()
      const space = dir === null ? null : await readSpace(dir).catch(() => null)
      return space ?? { bytes: { free: UNKNOWN, total: UNKNOWN }, inodes: null }
    },
  }
}

/** Directories of the engine that this process cannot read do not count. No call grows with the number of boxes. */
async function measureMachine(engine: Engine, boxId: string, signal: AbortSignal): Promise<DiskUsage> {
  const path = `/containers/${getContainerName(boxId)}/json`
  const { GraphDriver: driver, Mounts: mounts } = await engine.http.json<Inspected>({
    method: 'GET',
    path,
    signal,
  })
  const volumes: readonly string[] = [getHomeVolume(boxId), getStateVolume(boxId)]
  const volumeDirs = (mounts ?? []).flatMap(({ Name, Source }) =>
    Name !== undefined && volumes.includes(Name) && Source !== undefined ? [Source] : [],
  )
  const layerDir = await findReadable(driver?.Data?.UpperDir)
  const parts: DiskUsage[] = []
  if (layerDir === null) parts.push(await readLayerSize(engine, path, signal))
  else parts.push(await measureTree(layerDir, signal))
  for (const volumeDir of volumeDirs) {
    const dir = await findReadable(volumeDir)
    if (dir !== null) parts.push(await measureTree(dir, signal))
  }
  return {
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    inodes: parts.reduce((sum, { inodes }) => sum + inodes, 0),
  }
}

async function readLayerSize({ http }: Engine, path: string, signal: AbortSignal): Promise<DiskUsage> {
  const { SizeRw } = await http.json<Inspected>({ method: 'GET', path, query: { size: true }, signal })
  return { bytes: SizeRw ?? 0, inodes: 0 }
}

async function findReadable(dir: string | undefined): Promise<string | null> {
  if (dir === undefined) return null
  return await access(dir, constants.R_OK | constants.X_OK).then(
    () => dir,
    () => null,
  )
}
