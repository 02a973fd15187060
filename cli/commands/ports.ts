// box ports: lists the listening ports of a box.
import type { Command } from 'commander'
import type { BoxDetail } from '../../shared/api/boxes.ts'
import type { PortShares } from '../../shared/api/port-shares.ts'
import type { ListeningPort } from '../../shared/api/process-snapshots.ts'
import { isSuspended } from '../boxes/box-state.ts'
import { isLive, noSuchBoxError } from '../boxes/find-box.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatAge } from '../output/format.ts'

/** `closed`: for --watch. */
type Row = ListeningPort & { closed?: true }

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

\`box forward fig 3000\` makes port 3000 available at http://localhost:3000.

--filter port=TEXT and process=TEXT match a part of the text; with * or ? they match the whole text.`,
    )
    .action((name: string, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const { id, hostname } = await client.findBox(name)
        const load = async () => {
          const [{ state }, response] = await Promise.all([
            client.getBoxDetail(id),
            client.request<PortShares>('GET', `/boxes/${encodeURIComponent(id)}/port-shares`),
          ])
          if (!isLive({ observedState: state.observed })) throw noSuchBoxError(name)
          const { listening } = response
          return {
            rows: (listening?.ports ?? []) as Row[],
            toJson: (ports: readonly Row[]) => ({
              ...response,
              listening: listening && { ...listening, ports },
            }),
            note: getNote(hostname, state, listening?.at ?? null),
          }
        }
        return printList(createPortList(hostname), load, options, signal)
      }),
    )
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
