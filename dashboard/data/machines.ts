// The machines that were enrolled as boxes, and the machine that is expected to join.
import type { Box } from '../../shared/api/boxes.ts'
import type { Enrollment } from '../../shared/api/machines.ts'
import type { Boxes } from './items.ts'

export const listMachines = (boxes: Boxes): Box[] =>
  [...boxes.values()]
    .filter(({ kind, desiredState }) => kind === 'machine' && desiredState !== 'terminated')
    .sort((a, b) => (a.hostname < b.hostname ? -1 : 1))

/** What is known of a token that was created on this page. */
export type Expected = {
  enrollment: Pick<Enrollment, 'name' | 'expiresAt'>
  /** The line to run on the machine. */
  command: string
  /** The ids of the machines when the token was created. */
  knownIds: ReadonlySet<string>
}

/** The machine that has joined with the token: it has the name of the token, or is the only new one. */
export function findJoined({ enrollment: { name }, knownIds }: Expected, boxes: Boxes): Box | null {
  const added = listMachines(boxes).filter(({ id }) => !knownIds.has(id))
  if (name !== null) return added.find(({ hostname }) => hostname === name) ?? null
  return added.length === 1 ? (added[0] ?? null) : null
}
