// The names of boxes by their ids, as far as the caller may see them.
import type { Box } from '../../shared/api/boxes.ts'
import type { Client } from '../connection/client.ts'
import { isLive } from '../connection/find-box.ts'
import { CliError } from '../output/exit-codes.ts'

/** The start of an id, which is enough to distinguish boxes. */
const ID_LENGTH = 8

/** Returns a function that returns the name of a box; for an unknown box the start of the id. Uses the sign-in. */
export async function loadBoxNames(client: Client): Promise<(id: string) => string> {
  const boxes = new Map((await loadBoxes(client)).map((box) => [box.id, box]))
  return (id) => {
    const box = boxes.get(id)
    if (box === undefined) return id.slice(0, ID_LENGTH)
    return isLive(box) ? box.hostname : `${box.hostname} (deleted)`
  }
}

/** A coordinator that refuses the list has no names. */
async function loadBoxes(client: Client): Promise<Box[]> {
  try {
    return (await client.requestBySession<{ boxes: Box[] }>('GET', '/boxes')).boxes
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return []
  }
}
