// The isolation of a data directory: what its boxes had at the last start of a coordinator. A later start gives nothing weaker
// unless the operator has chosen it.
import { join } from 'node:path'
import { z } from 'zod'
import { ISOLATION_LEVELS } from '../../../shared/api/boxes.ts'
import { PermanentProviderError } from '../provider.ts'
import { readRecordFile, writeRecordFile } from '../record-file.ts'
import type { Level } from './levels/choose-level.ts'
import { type LocalIsolation, localIsolation } from './machine-file.ts'

/** What the operator has chosen by a setting, also where it is weaker than before. */
export type Accepted = Record<'level' | 'network' | 'protections', boolean>

const isolationRecord = localIsolation.extend({
  /** Boxes cannot use the kernel keyrings of the coordinator. An earlier version did not record it. */
  hasKeyringFilter: z.boolean().default(false),
})
export type IsolationRecord = z.infer<typeof isolationRecord>

const fileOf = (dataDir: string): string => join(dataDir, 'local-isolation.json')

/** The levels are listed strongest first. */
const rank = (level: Level): number => ISOLATION_LEVELS.indexOf(level)

export const isWeakerLevel = (level: Level, than: Level): boolean => rank(level) > rank(than)

/** Returns null for a data directory without a record: a new one, or one of an earlier version. */
export const readIsolationRecord = (dataDir: string): IsolationRecord | null =>
  readRecordFile(fileOf(dataDir), isolationRecord, 'the isolation that works on this machine now')

/**
 * The record of a data directory of an earlier version: the strongest isolation of the last starts of its boxes. Their limits
 * are not used, because they may have been started on another machine. null: no box was started.
 */
export function deriveRecord(isolationOfBoxes: readonly LocalIsolation[]): IsolationRecord | null {
  if (isolationOfBoxes.length === 0) return null
  const levels = isolationOfBoxes.map(({ level }) => level)
  return {
    level: levels.reduce((strongest, level) => (isWeakerLevel(strongest, level) ? level : strongest)),
    network: isolationOfBoxes.some(({ network }) => network === 'own') ? 'own' : 'host',
    limits: [],
    hasKeyringFilter: false,
  }
}

export const writeIsolationRecord = (dataDir: string, isolation: IsolationRecord): Promise<void> =>
  writeRecordFile(fileOf(dataDir), isolation)

/**
 * Throws PermanentProviderError when the isolation is weaker than the recorded one in a part that the operator has not accepted.
 * @param reasons why the stronger level and the network do not work now
 */
export function assertNotWeaker(
  recorded: IsolationRecord,
  current: IsolationRecord,
  accepted: Accepted,
  reasons: { level: string | null; network: string | null },
): void {
  const because = (reason: string | null) => (reason === null ? '' : `: ${reason}`)
  const missingLimits = recorded.limits.filter((name) => !current.limits.includes(name))
  const problems = [
    !accepted.level && isWeakerLevel(current.level, recorded.level)
      ? `isolation level ${recorded.level} does not work now${because(reasons.level)} (BOXWOOD_LOCAL_ISOLATION=${current.level} accepts the weaker level)`
      : null,
    !accepted.network && recorded.network === 'own' && current.network === 'host'
      ? `boxes cannot have their own network now${because(reasons.network)} (BOXWOOD_LOCAL_NETWORK=host accepts the network of this machine)`
      : null,
    !accepted.protections && missingLimits.length > 0
      ? `the limits of ${missingLimits.join(', ')} cannot be enforced now (BOXWOOD_PROTECTIONS=any accepts this)`
      : null,
    !accepted.protections && recorded.hasKeyringFilter && !current.hasKeyringFilter
      ? 'boxes could use the kernel keyrings of the coordinator now, because the native part that prevents this does not run: run `npm run build-native` (BOXWOOD_PROTECTIONS=any accepts this)'
      : null,
  ].filter((problem) => problem !== null)
  if (problems.length > 0)
    throw new PermanentProviderError(
      `The boxes of this data directory would be isolated less than before: ${problems.join('; ')}. Restore what is missing, or set what you accept.`,
    )
}
