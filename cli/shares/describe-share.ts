// Describes a link: who may open it, until when, and on which machines.

import type { PortShare } from '../../shared/api/port-shares.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { formatAge, formatTimestamp } from '../output/format.ts'

/** The address of the link. The secret of a link for anyone is not known after its creation. */
export const getAddress = ({ url, origin }: PortShare): string => url ?? `${origin}/?boxwood_secret=…`

export function formatExpiry(expiresAt: string | null, now: number): string {
  if (expiresAt === null) return 'never'
  const expiry = Date.parse(expiresAt)
  // Half a minute more: a link that was created for 7 days expires in 7d, not in 6d.
  return expiry <= now ? 'expired' : `in ${formatAge(new Date(now).toISOString(), expiry + 30_000)}`
}

export function describeAudience({ access, hostname, expiresAt }: PortShare, now: number): string {
  const until =
    expiresAt === null
      ? 'until `box unshare`'
      : `until ${formatTimestamp(expiresAt)} (${formatExpiry(expiresAt, now)})`
  switch (access) {
    case 'members':
      return `Members of the workspace who see ${hostname} may open it, ${until}.`
    case 'anyone':
      return `Anyone who has the link may open it, ${until}. Its secret is shown only now.`
    case 'public':
      return `Everyone may open it, ${until}.`
  }
}

const isLocalName = (hostname: string): boolean => hostname === 'localhost' || hostname.endsWith('.localhost')

/** null: the host name of the link works on other machines too. */
export function describeMachine({ origin }: PortShare, coordinatorUrl: string): string | null {
  if (!isLocalName(new URL(origin).hostname)) return null
  const machine = isLoopback(new URL(coordinatorUrl).hostname)
    ? 'this machine'
    : 'the machine of the coordinator'
  return `The address works only in browsers on ${machine}. To show the port to a person at another machine, see \`box docs share-elsewhere\`.`
}
