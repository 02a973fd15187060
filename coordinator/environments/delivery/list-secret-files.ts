// The paths of all secret files that a box may have: those of its version, those of an earlier one that has not been replaced yet,
// and those that were copied with the files of another box.
import { findBox } from '../../boxes/lookups.ts'
import type { Db } from '../../db/open.ts'
import { parseConfig } from '../config.ts'
import { findVersion } from '../store/versions.ts'

/** Paths start with `/` or `~/`. Empty: the box has none, or does not exist. */
export async function listSecretFiles(db: Db, boxId: string): Promise<string[]> {
  const box = await findBox(db, boxId)
  if (box === undefined) return []
  const { environment_id: id, environment_version_no: pinned, applied_version_no: applied } = box
  const numbers = [...new Set([pinned, applied])].filter((versionNo) => versionNo !== null)
  const versions = await Promise.all(
    id === null ? [] : numbers.map((versionNo) => findVersion(db, id, versionNo)),
  )
  const paths = versions.flatMap((row) => (row ? parseConfig(row.config).files.map(({ path }) => path) : []))
  return [...new Set([...paths, ...(JSON.parse(box.stale_files) as string[])])]
}
