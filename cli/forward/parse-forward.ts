// Parses the ports that the user types for `box forward`.
import { readLocalAddress } from '../arguments/local-address.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** `localPort` 0: any free port. */
export type Forward = { localPort: number; port: number }

const MAX_PORT = 65_535

/** @param text PORT or LOCAL:REMOTE, or an address such as http://localhost:3000. @throws CliError */
export function parseForward(text: string): Forward {
  // Without a scheme, 127.0.0.1:80 could also be the address to listen on.
  const ports = (text.includes('://') ? readLocalAddress(text) : null) ?? text
  const [first, second, ...others] = ports.split(':').map(parsePort)
  const [localPort, port] = second === undefined && !ports.includes(':') ? [first, first] : [first, second]
  if (localPort === undefined || port === undefined || port === 0 || others.length > 0)
    throw new CliError(
      EXIT.usage,
      `'${text}' is not a port. Write PORT or LOCAL:REMOTE with numbers between 1 and ${MAX_PORT}, such as 5432 or 8080:3000.`,
    )
  return { localPort, port }
}

/** @throws CliError when two forwards have the same local port */
export function parseForwards(texts: readonly string[]): Forward[] {
  const forwards = texts.map(parseForward)
  const ports = forwards.map(({ localPort }) => localPort).filter((port) => port !== 0)
  const repeated = ports.find((port, index) => ports.indexOf(port) !== index)
  if (repeated !== undefined)
    throw new CliError(
      EXIT.usage,
      `The local port ${repeated} is used twice. Choose another one for one of them, such as ${suggestPort(repeated)}:${repeated}.`,
    )
  return forwards
}

/** Another local port for messages, such as 8081 for 8080 and 8080 for 80. */
export const suggestPort = (port: number): number => {
  if (port < 1024) return port + 8000
  return port < MAX_PORT ? port + 1 : port - 1
}

const parsePort = (text: string): number | undefined =>
  /^\d{1,5}$/.test(text) && Number(text) <= MAX_PORT ? Number(text) : undefined
