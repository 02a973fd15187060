// box events: prints the state changes of a box.
import type { Command } from 'commander'
import type { BoxEvent } from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createIntegerParser } from '../arguments/options.ts'
import { isLive, noSuchBoxError } from '../connection/find-box.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatActor, loadMemberNames } from '../members/member-names.ts'
import { getStateColor } from '../output/colors.ts'
import { formatLocalTime } from '../output/format.ts'

type Options = ListOptions & { follow?: boolean; tail?: number }

type GetActor = (actor: string) => string

const createEventList = (getActor: GetActor): List<BoxEvent> => ({
  columns: [
    { header: 'TIME', cell: ({ at }) => formatLocalTime(Date.parse(at)) },
    {
      header: 'CHANGE',
      cell: ({ fromState, toState }) => ({
        text: fromState === null || fromState === toState ? toState : `${fromState} → ${toState}`,
        color: getStateColor(toState),
      }),
    },
    { header: 'ACTOR', cell: ({ actor }) => getActor(actor), isShort: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
    { header: 'ACTOR', cell: ({ actor }) => actor, isWide: true },
    { header: 'REASON', cell: ({ reason }) => reason },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: {
    state: { get: ({ toState }) => toState },
    reason: { get: ({ reason }) => reason },
    actor: { get: ({ actor }) => `${getActor(actor)} ${actor}` },
  },
  getEmptyMessage: () => 'No matching events.',
  isAppendOnly: true,
})

export function addEventsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('events')
      .summary('show the state changes of a box')
      .description(
        `Shows the last state changes of a box, at most ${LIMITS.boxEvents}, oldest first: when, why, and who requested them.`,
      )
      .argument('<name>', "the box's name or id; also of a deleted box")
      .option(
        '-n, --tail <count>',
        'show only the last events, 0 to 50',
        createIntegerParser('--tail', { min: 0, max: LIMITS.boxEvents }),
      )
      .option('-f, --follow', 'print further events until Ctrl-C, or until the box is deleted'),
    'the ids',
    createEventList(String).filters,
    { hasWatch: false },
  )
    .addHelpText(
      'after',
      `
Examples:
  box events fig
  box events fig --follow -n 0
  box events fig --filter state=suspended --json

With --follow and -o json, each event is one JSON object per line. --follow exits with 5 when the box is deleted.`,
    )
    .action((name: string, options: Options) =>
      runAction(async ({ client, signal }) => {
        const { id } = await findBoxWithRecords(client, name)
        const { tail = LIMITS.boxEvents, follow = false } = options
        const getUserName = await loadMemberNames(client)
        const list = createEventList((actor) => formatActor(actor, getUserName))
        let omitted: ReadonlySet<string> | null = null
        let isDeletionShown = false
        const load = async () => {
          if (isDeletionShown) throw noSuchBoxError(name)
          const { box, events } = await client.getBoxDetail(id)
          omitted ??= new Set(events.slice(tail).map((event) => event.id))
          const shown = events.filter((event) => !omitted?.has(event.id)).reverse()
          isDeletionShown = follow && !isLive(box)
          return { rows: shown, toJson: (rows: readonly BoxEvent[]) => ({ events: rows }) }
        }
        return printList(list, load, { ...options, watch: follow }, signal)
      }),
    )
}
