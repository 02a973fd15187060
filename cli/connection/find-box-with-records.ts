// Finds a box whose records are read: a live box, else the deleted one whose records are still stored.
import type { Box, BoxList } from '../../shared/api/boxes.ts'
import { MIN_ID_PREFIX_LENGTH } from '../../shared/uuid.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import { formatLocalTime } from '../output/format.ts'
import { printMessage, sanitize } from '../output/print.ts'
import type { Client } from './client.ts'
import { findBox, isLive } from './find-box.ts'

/**
 * Finds a box as `client.findBox` does, else the box with this name that was deleted last, or a deleted box by a unique
 * prefix of its id. A note on stderr says that the box is deleted. @throws CliError
 */
export async function findBoxWithRecords(client: Client, nameOrId: string): Promise<Box> {
  const list = async (query: Record<string, string>) =>
    (await client.request<BoxList>('GET', `/boxes?${new URLSearchParams({ box: nameOrId, ...query })}`)).boxes
  const box = findBox(await list({}), nameOrId) ?? findDeletedBox(await list({ deleted: '1' }), nameOrId)
  // The error of the client has similar names.
  if (box === undefined) return client.findBox(nameOrId)
  if (!isLive(box)) {
    const { state } = await client.getBoxDetail(box.id)
    printMessage(
      `${sanitize(box.hostname)} was deleted on ${formatLocalTime(Date.parse(state.since))}; these are its records.`,
    )
  }
  return box
}

/** @param boxes deleted boxes: the last one with the name, and those whose id starts with it */
function findDeletedBox(boxes: readonly Box[], text: string): Box | undefined {
  const named = boxes.find(({ hostname }) => hostname === text)
  if (named !== undefined || text.length < MIN_ID_PREFIX_LENGTH) return named
  return findByPrefix(boxes, text, {
    getId: ({ id }) => id,
    describe: ({ hostname }) => hostname,
    kind: 'deleted boxes',
  })
}
