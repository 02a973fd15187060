// The clients of the boxes that are open in this tab.
import { type BoxClient, createBoxClient } from '../api/box-client.ts'
import { getClient, getCoordinatorTime } from './live.ts'
import { resolveUrl } from './navigation.ts'
import { retryingFetch } from './retrying-fetch.ts'

const clients = new Map<string, BoxClient>()

export function getBoxClient(boxId: string): BoxClient {
  const existing = clients.get(boxId)
  if (existing !== undefined) return existing
  const client = createBoxClient({
    base: resolveUrl('').href,
    boxId,
    fetch: retryingFetch,
    createTicket: () => getClient().createTicket(boxId),
    getTime: getCoordinatorTime,
  })
  clients.set(boxId, client)
  return client
}
