// Requests for shared ports. A refusal gets a sentence with the command that helps.
import type {
  CreatePortShareRequest,
  CreatePortShareResponse,
  PortAudience,
  PortShare,
  PortShareList,
  PortShares,
} from '../../shared/api/port-shares.ts'
import { createApiError } from '../connection/api-errors.ts'
import type { Client } from '../connection/client.ts'
import { addHint, addHints, type Hint } from '../connection/refusals.ts'

/** A link that opens a share once, without signing in. */
export type OpenLink = { url: string; expiresAt: string }

const toPath = (boxId: string) => `/boxes/${encodeURIComponent(boxId)}/port-shares`

export const loadBoxShares = (client: Client, boxId: string): Promise<PortShares> =>
  client.request('GET', toPath(boxId))

/** The links of all boxes. */
export const loadShares = (client: Client): Promise<PortShareList> => client.request('GET', '/port-shares')

export const createShare = (
  client: Client,
  box: { id: string; hostname: string },
  body: CreatePortShareRequest,
): Promise<CreatePortShareResponse> =>
  addHints(
    client.request<CreatePortShareResponse>('POST', toPath(box.id), body),
    createHints(`${box.hostname} ${body.port}`, body.access),
  )

/**
 * Call before the existing link of the port is ended, for a new one.
 * @throws CliError when the coordinator would refuse the new link
 */
export function assertAllowed(
  modes: PortShares['modes'],
  { access = 'members', port }: CreatePortShareRequest,
  existing: PortShare,
): void {
  const mode = modes[access]
  // The new link takes the slot of the existing one.
  const hasSlot = existing.access !== 'members'
  if (mode.allowed || (mode.error === 'share_link_limit' && hasSlot)) return
  throw addHint(createApiError(mode.error, mode.message), createHints(`${existing.hostname} ${port}`, access))
}

export const revokeShare = (client: Client, id: string): Promise<{ revoked: true }> =>
  client.request('DELETE', `/port-shares/${encodeURIComponent(id)}`)

export const createOpenLink = (client: Client, id: string): Promise<OpenLink> =>
  client.request('POST', `/port-shares/${encodeURIComponent(id)}/open`)

/** @param words the box and the port, as arguments of a command */
function createHints(words: string, access: PortAudience = 'members'): Record<string, Hint> {
  const members = `\`box share ${words}\` shares it with the members of the workspace.`
  const forward = `\`box forward ${words}\` opens the port on this machine.`
  return {
    port_share_disabled: `BOXWOOD_SHARES of the coordinator turns it on. ${forward}`,
    share_links_disabled: `BOXWOOD_SHARES and BOXWOOD_SHARE_LINKS of the coordinator turn them on. ${members}`,
    share_links_blocked: `An owner allows links with \`box policies set shareLinks on\`. ${members}`,
    share_links_need_payment: members,
    policy_denied: `An owner can create the link, or allow it with \`box policies set anyoneLinksOwnerOnly off\`. ${members}`,
    not_allowed: access === 'members' ? forward : members,
    share_link_limit:
      '`box shares --filter access=anyone --filter access=public` lists the links, `box unshare NAME PORT` ends one.',
  }
}
