// Which boxes, snapshots and operations an actor may see (spec §5.6, §5.9). One rule decides a single read and a list.
import type { Visibility } from '../db/where-visible.ts'
import type { Actor } from './actor.ts'

/** The fields that decide who may see a resource. */
export type Resource = {
  workspaceId: string
  /** The box that the resource is, or belongs to. null: it belongs to no box that is still stored. */
  boxId: string | null
  /** The owner of that box. */
  ownerUserId: string | null
}

/** A limited key sees its boxes. A contractor sees the boxes that the contractor owns. */
export const getVisibility = ({ workspaceId, boxIds, role, userId }: Actor): Visibility => ({
  workspaceId,
  boxIds,
  // No user has the empty id.
  ownerUserId: role === 'contractor' ? (userId ?? '') : null,
})

export const canSee = (actor: Actor, resource: Resource): boolean => isVisible(getVisibility(actor), resource)

export function isVisible(visible: Visibility, { workspaceId, boxId, ownerUserId }: Resource): boolean {
  if (workspaceId !== visible.workspaceId) return false
  if (visible.boxIds !== null && (boxId === null || !visible.boxIds.includes(boxId))) return false
  return visible.ownerUserId === null || ownerUserId === visible.ownerUserId
}
