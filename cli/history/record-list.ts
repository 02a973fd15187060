// The list of `box history`: columns and filters.
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { COMMAND_MODES, COMMAND_STATUSES } from '../../shared/field-values.ts'
import type { List } from '../lists/list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge, formatDuration } from '../output/format.ts'
import { formatCommand, formatExit } from '../processes/process-messages.ts'

/** The actor of a record as text. */
type GetActor = (record: CommandRecord) => string

/** @param getUserName of the id of a user */
export const createActorText =
  (getUserName: (id: string) => string): GetActor =>
  ({ actor: { kind, userId } }) =>
    userId === null ? kind : getUserName(userId)

/** @param getActor not called by the parser of --filter, which only needs the keys */
export const createFilters = (getActor: GetActor): List<CommandRecord>['filters'] => ({
  status: { get: ({ status }) => status, values: COMMAND_STATUSES },
  mode: { get: ({ mode }) => mode, values: COMMAND_MODES },
  user: { get: (record) => `${getActor(record)} ${record.actor.userId ?? ''}` },
  source: { get: ({ source }) => source },
  command: { get: ({ command }) => command },
})

/** Where the records come from: one box, or several with their names by id. */
export type RecordOrigin = string | { getBoxName(boxId: string): string }

export const createRecordList = (origin: RecordOrigin, getActor: GetActor): List<CommandRecord> => ({
  columns: [
    { header: 'ID', cell: ({ id }) => id },
    ...(typeof origin === 'string'
      ? []
      : [{ header: 'BOX', cell: ({ boxId }: CommandRecord) => origin.getBoxName(boxId) }]),
    {
      header: 'STARTED',
      cell: ({ startedAt }, now) => `${formatAge(startedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'STARTED AT', cell: ({ startedAt }) => startedAt, isWide: true },
    { header: 'MODE', cell: ({ mode }) => mode },
    { header: 'SOURCE', cell: ({ source }) => source },
    { header: 'BY', cell: getActor },
    { header: 'USER ID', cell: ({ actor }) => actor.userId ?? '-', isWide: true },
    {
      header: 'STATUS',
      cell: (record) => ({ text: formatExit(record.status, record), color: getStateColor(record.status) }),
    },
    { header: 'TOOK', cell: formatElapsed },
    { header: 'STDOUT', cell: ({ stdoutBytes }) => String(stdoutBytes), isWide: true },
    { header: 'STDERR', cell: ({ stderrBytes }) => String(stderrBytes), isWide: true },
    { header: 'CWD', cell: ({ cwd }) => cwd ?? '-', isWide: true },
    {
      header: 'COMMAND',
      cell: ({ command, commandTruncated }) =>
        command === null ? '(not stored)' : formatCommand(command, commandTruncated),
    },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: createFilters(getActor),
  getEmptyMessage: (isFiltered) =>
    `No ${isFiltered ? 'matching ' : ''}commands recorded${typeof origin === 'string' ? ` on ${origin}` : ''}.`,
})

const formatElapsed = ({ startedAt, finishedAt }: CommandRecord): string =>
  finishedAt === null ? '-' : formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))
