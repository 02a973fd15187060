// Whether a box that is not running stays stopped, for streams that would otherwise wait for it.
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { CliError } from '../output/exit-codes.ts'

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
