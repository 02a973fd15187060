// The form of a backup: a tar archive. The first entry describes the backup, the last one has the SHA-256 of all others.
import { z } from 'zod'
import { REGIONS } from '../../../shared/tiers.ts'
import { SIGNING_KEY_FILE } from '../../agents/bundles/signing-key.ts'
import { HOST_FILE } from '../../base/host-id.ts'
import { MASTER_KEYS_FILE } from '../../base/sealing/key-file.ts'
import { DEPLOYMENT_ID_FILE } from '../../providers/deployment-id.ts'
import { PROVIDER_KINDS } from '../../providers/settings.ts'

/** The first entry. */
export const DESCRIPTION_ENTRY = 'backup.json'
/** The last entry, in the form of sha256sum. A file without it is not complete. */
export const CHECKSUMS_ENTRY = 'SHA256SUMS'
export const DATABASE_ENTRY = 'boxwood.db'
/**
 * Files of the data directory that a backup contains if they exist. The last two are those of an earlier version, whose values the
 * next start stores in the database.
 */
export const KEY_FILES = [
  'owner.key',
  MASTER_KEYS_FILE,
  HOST_FILE,
  SIGNING_KEY_FILE,
  DEPLOYMENT_ID_FILE,
] as const

export const FORMAT_VERSION = 1

export const backupDescription = z.object({
  format: z.int().positive(),
  /** The version of the coordinator that wrote the backup. */
  version: z.string(),
  createdAt: z.iso.datetime(),
  /** The migrations of the database, in order. */
  migrations: z.array(z.string()).min(1),
  boxes: z.object({
    /** Boxes whose files are in the backup. */
    included: z.int().nonnegative(),
    /** Boxes whose files are not in the backup. */
    omitted: z.int().nonnegative(),
  }),
  archives: z
    .object({
      /** Snapshots, and boxes in deep sleep, whose files are not in the backup. */
      omitted: z.int().nonnegative(),
    })
    // Earlier versions knew only archives on the coordinator's machine.
    .default({ omitted: 0 }),
})
export type BackupDescription = z.infer<typeof backupDescription>

/** The directory of a region, or of an engine. */
const STORE_PARENT = `(?:regions/(?:${REGIONS.join('|')})/|(?:${PROVIDER_KINDS.join('|')})/)?`
const FILE_PATTERN = new RegExp(
  `^(?:${[DATABASE_ENTRY, ...KEY_FILES].join('|').replaceAll('.', '\\.')}|` +
    `${STORE_PARENT}archives/\\w{1,64}/(?:archives/\\w{1,64}/(?:manifest\\.json|chunks)|chunks/[0-9a-f]{2}/[0-9a-f]{64}))$`,
)

/** Whether a restore may write the entry: a file of the data directory. */
export const isDataFile = (name: string): boolean => FILE_PATTERN.test(name)

export const formatChecksum = (name: string, sha256: string): string => `${sha256}  ${name}\n`

/** Returns name → SHA-256; null when a line is damaged. */
export function parseChecksums(text: string): Map<string, string> | null {
  const lines = text.split('\n').slice(0, -1)
  const entries = lines.map((line) => /^([0-9a-f]{64}) {2}(\S+)$/.exec(line))
  const sums = new Map(entries.map((match) => [match?.[2] ?? '', match?.[1] ?? '']))
  return sums.has('') || sums.size !== lines.length ? null : sums
}
