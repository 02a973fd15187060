// Decides which secret files a box gets, and which it loses. Pure functions.
import type { BoxRow } from '../../db/schema.ts'
import type { EnvironmentVersion } from '../types.ts'

export type FilePlan = {
  /** Whether the box gets the files of its version. */
  writes: boolean
  /** Paths that are removed. */
  remove: string[]
}

type Delivery = Pick<BoxRow, 'environment_version_no' | 'applied_version_no' | 'stale_files'>

export const isDelivered = (box: Delivery): boolean =>
  box.environment_version_no === box.applied_version_no && box.stale_files === NO_FILES

/** The value of BoxRow.stale_files when the first delivery is complete. */
export const NO_FILES = '[]'

const listPaths = (version: EnvironmentVersion | undefined): string[] =>
  version?.config.files.map(({ path }) => path) ?? []

/**
 * A restricted box gets no files. Those that it had, or that were copied with the files of another box, are removed.
 * @param versions applied: the version whose files the box has
 */
export function planFiles(
  { restricted, stale_files: staleFiles }: Pick<BoxRow, 'restricted' | 'stale_files'>,
  versions: { pinned: EnvironmentVersion | undefined; applied: EnvironmentVersion | undefined },
): FilePlan {
  const pinned = listPaths(versions.pinned)
  const present = [...listPaths(versions.applied), ...(JSON.parse(staleFiles) as string[])]
  if (restricted === 1) return { writes: false, remove: [...new Set([...present, ...pinned])] }
  const remove = new Set(present.filter((path) => !pinned.includes(path)))
  return { writes: pinned.length > 0, remove: [...remove] }
}
