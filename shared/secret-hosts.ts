// Which hosts a secret covers. The agent and the coordinator use the same rule.

/**
 * @param pattern a host name, or `*.` and a domain, which covers all names below the domain and not the domain itself
 * @param host in lowercase ASCII, without a port and a final period
 */
export function coversHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host
  const suffix = pattern.slice(1)
  return host.length > suffix.length && host.endsWith(suffix)
}

/** The agent tests the broker with this host, to which only the coordinator responds. */
export const BROKER_TEST_HOST = 'test.broker.boxwood.invalid'
