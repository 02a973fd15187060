// Decides which secret files a box gets, and which it loses. Pure functions.
import type { BoxRow } from '../../../db/schema.ts'
import type { EnvironmentVersion } from '../types.ts'

export type FilePlan = {
  /** Whether the box gets the files of its version. */
  writes: boolean
  /** Paths that are removed. */
  remove: string[]
}

type Delivery = Pick<BoxRow, 'environment_version_no' | 'applied_version_no'>

export const isDelivered = ({ environment_version_no, applied_version_no }: Delivery): boolean =>
  environment_version_no === applied_version_no

const listPaths = (version: EnvironmentVersion | undefined): string[] =>
  version?.config.files.map(({ path }) => path) ?? []

/**
 * A restricted box gets no files. Those that it had, or that were copied with the files of another box, are removed.
 * @param versions applied: the version whose files the box has
 */
export function planFiles(
  { restricted }: Pick<BoxRow, 'restricted'>,
  versions: { pinned: EnvironmentVersion | undefined; applied: EnvironmentVersion | undefined },
): FilePlan {
  const pinned = listPaths(versions.pinned)
  const applied = listPaths(versions.applied)
  if (restricted === 1) return { writes: false, remove: [...new Set([...applied, ...pinned])] }
  return { writes: pinned.length > 0, remove: applied.filter((path) => !pinned.includes(path)) }
}
