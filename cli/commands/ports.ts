// box ports: lists the listening ports of a box.
import type { Command } from 'commander'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import type { PortShare, PortShares } from '../../shared/api/port-shares.ts'
import type { ListeningPort } from '../../shared/api/process-snapshots.ts'
import { boxCommand } from '../command-name.ts'
import { isLive, noSuchBoxError } from '../connection/find-box.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { isSuspended } from '../output/box-state.ts'
import { formatAge } from '../output/format.ts'
import { getAddress } from '../shares/describe-share.ts'
import { loadBoxShares } from '../shares/requests.ts'

/** `open`: the address of the port, or the command that opens it. `closed`: for --watch. */
type Row = ListeningPort & { open: string; closed?: true }

const FILTERS: List<Row>['filters'] = {
  port: { get: ({ port }) => String(port) },
  process: { get: ({ process }) => process },
}

const createPortList = (boxName: string): List<Row> => ({
  columns: [
    { header: 'PORT', cell: ({ port }) => String(port) },
    { header: 'PID', cell: ({ pid }) => (pid === null ? '-' : String(pid)) },
    {
      header: 'PROCESS',
      cell: ({ process, closed }) => (closed ? { text: 'closed', color: 'gray' } : (process ?? '-')),
    },
    { header: 'OPEN WITH', cell: ({ open, closed }) => (closed ? '-' : open) },
  ],
  getId: ({ port, pid }) => `${port} ${pid}`,
  getName: ({ port }) => String(port),
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered ? `No matching ports on ${boxName}.` : `No known listening ports on ${boxName}.`,
  toRemoved: (port) => ({ ...port, closed: true }),
})

export function addPortsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('ports')
      .summary('list the listening ports of a box')
      .description(
        'Lists the TCP ports on which processes of the box listen, with the process where it is known. The box reports a ' +
          'change within a second or two.',
      )
      .argument('<name>', "the box's name or id"),
    'the ports',
    FILTERS,
  )
    .addHelpText(
      'after',
      `
Examples:
  box ports fig
  box ports fig --watch
  box ports fig --filter process=node
  box ports fig --json | jq '.listening.ports[].port'

OPEN WITH is the address of a shared port, else the command that shares it. Any port, such as that of a database, opens on
this machine with \`box forward fig PORT\`. A box with the network of its host (NETWORK in \`box ls -o wide\`) has its
ports on the host, too.

--filter port=TEXT and process=TEXT match a part of the text; with * or ? they match the whole text.`,
    )
    .action((name: string, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const { id, hostname } = await client.findBox(name)
        const load = async () => {
          const [{ state }, response] = await Promise.all([
            client.getBoxDetail(id),
            loadBoxShares(client, id),
          ])
          if (!isLive({ observedState: state.observed })) throw noSuchBoxError(name)
          const { listening } = response
          const shares = new Map(response.shares.map((share) => [share.port, share]))
          const rows = (listening?.ports ?? []).map(
            (port): Row => ({
              ...port,
              open: formatOpen(hostname, port.port, shares.get(port.port), response),
            }),
          )
          return {
            rows,
            toJson: (ports: readonly Row[]) => ({
              ...response,
              listening: listening && { ...listening, ports: ports.map(({ open: _, ...port }) => port) },
            }),
            note: getNote(hostname, state, listening?.at ?? null),
          }
        }
        return printList(createPortList(hostname), load, options, signal)
      }),
    )
}

function formatOpen(
  boxName: string,
  port: number,
  share: PortShare | undefined,
  { modes }: Pick<PortShares, 'modes'>,
): string {
  if (share !== undefined) return getAddress(share)
  return `${boxCommand()} ${modes.members.allowed ? 'share' : 'forward'} ${boxName} ${port}`
}

/** Why the list is old or unknown; null: it is current. */
function getNote(
  name: string,
  { observed, connected }: Pick<BoxDetail['state'], 'observed' | 'connected'>,
  reportedAt: string | null,
): string | null {
  if (reportedAt !== null && connected) return null
  if (isSuspended(observed))
    return `${name} is suspended: no process listens. Start it with \`box wake ${name}\`.`
  return reportedAt === null
    ? `${name} is ${observed}, but has not reported its ports in the last minutes.`
    : `${name} is not connected. These ports are from ${formatAge(reportedAt, Date.now())} ago.`
}
