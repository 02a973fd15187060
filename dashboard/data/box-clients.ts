// The clients of the boxes that are open in this tab.
import { createFetchTransport } from '../../client/http/transport.ts'
import { type BoxClient, createBoxClient } from '../api/box-client.ts'
import { getClient, getCoordinatorTime } from './live.ts'
import { resolveUrl } from './navigation.ts'

const transport = createFetchTransport('omit')
const clients = new Map<string, BoxClient>()

export function getBoxClient(boxId: string): BoxClient {
  const existing = clients.get(boxId)
  if (existing !== undefined) return existing
  const client = createBoxClient({
    base: resolveUrl('').href,
    boxId,
    transport,
    createTicket: () => getClient().createTicket(boxId),
    getTime: getCoordinatorTime,
  })
  clients.set(boxId, client)
  return client
}
