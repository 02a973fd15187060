// What operations of a box leave to be removed later: machines in other regions and outdated archives.
import type { Region } from '../../../shared/tiers.ts'
import type { BoxRow } from '../../db/schema.ts'

export type Leftover = {
  region: Region
  /** The machine of the box in this region, which is not the region of the box. */
  machine: boolean
  archiveId: string | null
}

export const parseLeftovers = ({ leftovers }: Pick<BoxRow, 'leftovers'>): Leftover[] =>
  leftovers === null ? [] : (JSON.parse(leftovers) as Leftover[])

export const addLeftover = (leftovers: string | null, ...added: Leftover[]): string =>
  JSON.stringify([...parseLeftovers({ leftovers }), ...added])
