// The target of a CONNECT request (RFC 9110, section 9.3.6).
import { BROKER_TEST_HOST, coversHost } from '../../shared/secret-hosts.ts'

export type ConnectTarget = {
  /** In lowercase, without brackets and without a final period. */
  host: string
  port: number
}

/** The coordinator accepts no other port. */
const HTTPS_PORT = 443
const AUTHORITY = /^(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?)):(\d{1,5})$/i

/** undefined: not valid. */
export function parseConnectTarget(authority = ''): ConnectTarget | undefined {
  const [, address, name, digits] = AUTHORITY.exec(authority) ?? []
  const host = (address ?? name)?.toLowerCase().replace(/\.$/, '')
  const port = Number(digits)
  return host === undefined || host === '' || port < 1 || port > 65_535 ? undefined : { host, port }
}

/** @param patterns the hosts of the mounted secrets */
export const isBrokered = ({ host, port }: ConnectTarget, patterns: readonly string[]): boolean =>
  port === HTTPS_PORT && (host === BROKER_TEST_HOST || patterns.some((pattern) => coversHost(pattern, host)))
