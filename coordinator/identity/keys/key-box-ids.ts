// Checks the boxes to which an API key is limited.
import type { Box } from '../../../shared/api/boxes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { isUuid } from '../../../shared/uuid.ts'
import type { Actor } from '../../http/actor.ts'

export type KeyBoxes = {
  list(actor: Actor, options: { live: boolean }): Promise<Pick<Box, 'id' | 'desiredState'>[]>
}

/**
 * Returns the ids in the stored form.
 * @param keyUser the user of the key
 * @throws ApiError not_found
 */
export async function checkBoxIds(
  boxes: KeyBoxes,
  keyUser: Actor,
  ids: readonly string[],
): Promise<string[]> {
  const sorted = [...new Set(ids)].sort()
  const boxIds = sorted.filter(isUuid)
  const visible = boxIds.length === 0 ? [] : await boxes.list({ ...keyUser, boxIds }, { live: true })
  const usable = visible.filter((box) => box.desiredState !== 'terminated')
  if (usable.length < sorted.length)
    throw new ApiError(
      'not_found',
      'boxIds has a box that does not exist, has been deleted, or that the user of the key may not access.',
    )
  return sorted
}
