// Explains a not_found of something on a box: the box itself may have been deleted meanwhile.
import type { Client, EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

const isNotFound = (error: unknown): boolean => error instanceof CliError && error.code === 'not_found'

/** Returns `error`, or an error that names the box if it has been deleted. */
export async function explainNotFound(
  error: unknown,
  client: Pick<Client, 'getBoxDetail'>,
  { boxId, boxName }: Pick<EdgeClient, 'boxId' | 'boxName'>,
): Promise<unknown> {
  if (!isNotFound(error) || boxId === null || !(await isDeleted(client, boxId))) return error
  return new CliError(EXIT.notFound, `Box ${boxName} was deleted.`, { code: 'no_such_box', cause: error })
}

async function isDeleted(client: Pick<Client, 'getBoxDetail'>, boxId: string): Promise<boolean> {
  try {
    return (await client.getBoxDetail(boxId)).box.desiredState === 'terminated'
  } catch (error) {
    // If this request fails too, the first error is the better explanation.
    if (error instanceof CliError) return isNotFound(error)
    throw error
  }
}
