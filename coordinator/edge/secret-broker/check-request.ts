// Refuses requests that another server might interpret differently, or that are meant for another host.
import type { IncomingMessage } from 'node:http'
import { isNamed, toPairs } from '../../http/forward/raw-headers.ts'
import { BrokerError } from './broker-error.ts'

/** What Node's strict parser accepts. @param host of the connection */
export function checkRequest(
  { method = '', url = '', rawHeaders }: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>,
  host: string,
): BrokerError | null {
  const headers = toPairs(rawHeaders)
  const hosts = headers.filter((header) => isNamed(header, 'host')).map(([, value]) => value.toLowerCase())
  if (method === 'TRACE') return new BrokerError('method_not_allowed', 'TRACE is not supported.')
  if (!url.startsWith('/'))
    return new BrokerError('bad_request', 'The target of a request must be a path, such as /v1/models.')
  if (hosts.length !== 1 || (hosts[0] !== host && hosts[0] !== `${host}:443`))
    return new BrokerError(
      'wrong_host',
      `A request on this connection must have one header Host, with ${host}.`,
    )
  const encodings = headers.filter((header) => isNamed(header, 'transfer-encoding')).map(([, value]) => value)
  if (encodings.length > 1 || encodings.some((value) => value.toLowerCase() !== 'chunked'))
    return new BrokerError('bad_request', 'The header Transfer-Encoding must be chunked.')
  return null
}
