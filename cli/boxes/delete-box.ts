// Deletes a box: the request, and its result as text.
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Client } from '../connection/client.ts'

export type Deletion = { box: Box; operation: Operation }

/** The coordinator completes the deletion later, also when this process has exited. @throws CliError */
export const deleteBox = (client: Client, { id }: Box): Promise<Deletion> =>
  client.request<Deletion>('DELETE', `/boxes/${id}`)

/**
 * Returns what the deletion of an enrolled machine loses because its agent is not connected; null for other boxes. Call it
 * before the deletion. @throws CliError
 */
export async function describeLoss(client: Client, { id, kind }: Box): Promise<string | null> {
  if (kind !== 'machine') return null
  const { state } = await client.request<BoxDetail>('GET', `/boxes/${id}`)
  if (state.connected) return null
  return 'its agent is not connected. Records and output that it has not sent are lost. It uninstalls itself when it connects.'
}
