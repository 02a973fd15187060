// Whether a box that is not running stays stopped, for streams that would otherwise wait for it.
import type { EdgeClient } from '../client.ts'
import { CliError } from '../exit-codes.ts'
import type { Session } from '../session.ts'

/** Whether the box will stay stopped: after a restart of the coordinator, boxes that were running are woken. */
export async function isBoxStopped(
  { client }: Pick<Session, 'client'>,
  { boxId }: Pick<EdgeClient, 'boxId'>,
): Promise<boolean> {
  if (boxId === null) return true
  try {
    return (await client.getBoxDetail(boxId)).box.desiredState !== 'running'
  } catch (error) {
    // The coordinator has disconnected: retry.
    if (error instanceof CliError) return false
    throw error
  }
}
