// Finds a box among the boxes of a response.
import type { Box } from '../../shared/api/boxes.ts'
import { MIN_ID_PREFIX_LENGTH } from '../../shared/uuid.ts'
import { NoSuchNameError } from '../arguments/no-such-name.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { CliError } from '../output/exit-codes.ts'

/**
 * Finds a live box by name, any box by id, or a live box by a unique prefix of its id of at least eight characters. A name
 * wins over a prefix. @throws CliError when several ids match
 */
export function findBox(boxes: readonly Box[], text: string): Box | undefined {
  const exact = boxes.filter((box) => box.id === text || box.hostname === text)
  const box = exact.find(isLive) ?? exact.find(({ id }) => id === text)
  if (box !== undefined || text.length < MIN_ID_PREFIX_LENGTH) return box
  return findByPrefix(boxes.filter(isLive), text, {
    getId: ({ id }) => id,
    describe: ({ hostname }) => hostname,
    kind: 'boxes',
  })
}

export const isLive = ({ observedState }: Pick<Box, 'observedState'>): boolean =>
  observedState !== 'terminated'

/**
 * @param boxes the boxes of the response in which the box was searched, for a similar name
 * @param isDeleted the records of a deleted box with this name are stored
 */
export function noSuchBoxError(nameOrId: string, boxes: readonly Box[] = [], isDeleted = false): CliError {
  return new NoSuchNameError({
    kind: 'box',
    typed: nameOrId,
    names: boxes.filter(isLive).map(({ hostname }) => hostname),
    advice: isDeleted
      ? `It was deleted: \`box history ${nameOrId}\` shows its commands.`
      : 'Run `box ls` to list boxes.',
    code: 'no_such_box',
  })
}
