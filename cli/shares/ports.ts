// Ports as arguments, and the port to share when none was typed.
import type { Listening } from '../../shared/api/port-shares.ts'
import { readLocalAddress } from '../arguments/local-address.ts'
import { createIntegerParser } from '../arguments/options.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

const parseNumber = createIntegerParser('The port', { min: 1, max: 65_535 })

/** @param text a number, or the address that the server on the box prints. @throws CliError */
export const parsePort = (text: string): number => parseNumber(readLocalAddress(text) ?? text)

/** Returns the only listening port. @throws CliError when there are no ports or several */
export function selectPort(boxName: string, listening: Listening | null): number {
  const ports = new Map((listening?.ports ?? []).map(({ port, process }) => [port, process]))
  const [first] = ports.keys()
  if (first !== undefined && ports.size === 1) return first
  if (first === undefined)
    throw new CliError(
      EXIT.usage,
      listening === null
        ? `The listening ports of ${boxName} are not known. Type the port: \`box share ${boxName} 3000\`.`
        : `Nothing listens on ${boxName}. Start a server in it, or type the port: \`box share ${boxName} 3000\`.`,
    )
  const lines = [...ports].map(
    ([port, process]) =>
      `\n  \`box share ${boxName} ${port}\`${process === null ? '' : `  ${sanitize(process)}`}`,
  )
  throw new CliError(EXIT.usage, `${ports.size} ports listen on ${boxName}. Type one of:${lines.join('')}`)
}
