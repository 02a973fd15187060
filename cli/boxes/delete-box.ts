// Deletes a box: the request, and its result as text.
import type { Box } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Client } from '../connection/client.ts'

export type Deletion = { box: Box; operation: Operation }

/** The coordinator completes the deletion later, also when this process has exited. @throws CliError */
export const deleteBox = (client: Client, { id }: Box): Promise<Deletion> =>
  client.request<Deletion>('DELETE', `/boxes/${id}`)

export function formatDeletionStatus({ status }: Operation): string {
  if (status === 'completed') return 'deleted'
  return status === 'failed' ? 'deletion failed' : 'deleting'
}
