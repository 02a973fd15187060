// The list of snapshots, and what may be done with each.
import type { Operation } from '../../shared/api/operations.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'

/** Why a snapshot was taken, in words. */
export const SNAPSHOT_KINDS: Readonly<Record<Snapshot['kind'], string>> = {
  manual: 'on request',
  auto: 'scheduled',
  fork: 'for a fork',
  final: 'before a deletion',
  template: 'template',
}

/** Newest first. @param filter words that the name, the box, the template or the kind must contain */
export function selectSnapshots(snapshots: ReadonlyMap<string, Snapshot>, filter: string): Snapshot[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return [...snapshots.values()]
    .filter(({ name, sourceBoxHostname, templateName, kind, status }) => {
      const text = [name, sourceBoxHostname, templateName, kind, status].join(' ').toLowerCase()
      return words.every((word) => text.includes(word))
    })
    .sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))
}

export type SnapshotAction = 'restore' | 'template' | 'untemplate' | 'delete'

export function listSnapshotActions({ status, templateName }: Snapshot): SnapshotAction[] {
  if (status === 'available')
    return [
      'restore',
      ...(templateName === null ? (['template'] as const) : (['untemplate'] as const)),
      'delete',
    ]
  return status === 'failed' ? ['delete'] : []
}

/** Why the snapshot could not be taken or deleted. */
export function findSnapshotError(
  { id, error }: Snapshot,
  operations: ReadonlyMap<string, Operation>,
): string | null {
  const failed = [...operations.values()].find(
    ({ targetId, kind, status }) => targetId === id && kind === 'snapshot_delete' && status === 'failed',
  )
  return error ?? failed?.error ?? null
}
