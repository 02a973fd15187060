// The list of `box history`: columns and filters.
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { COMMAND_MODES, COMMAND_STATUSES } from '../../shared/field-values.ts'
import type { List } from '../lists/list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge, formatDuration } from '../output/format.ts'
import { formatCommand, formatExit } from '../processes/process-messages.ts'
import type { UserNames } from './user-names.ts'

/** @param getUserName not called by the parser of --filter, which only needs the keys */
export const createFilters = (getUserName: UserNames['getName']): List<CommandRecord>['filters'] => ({
  status: { get: ({ status }) => status, values: COMMAND_STATUSES },
  mode: { get: ({ mode }) => mode, values: COMMAND_MODES },
  user: { get: (record) => `${getUserName(record)} ${record.actor.userId ?? ''}` },
  source: { get: ({ source }) => source },
  command: { get: ({ command }) => command },
})

export const createRecordList = (boxName: string, { getName }: UserNames): List<CommandRecord> => ({
  columns: [
    { header: 'ID', cell: ({ id }) => id },
    {
      header: 'STARTED',
      cell: ({ startedAt }, now) => `${formatAge(startedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'STARTED AT', cell: ({ startedAt }) => startedAt, isWide: true },
    { header: 'MODE', cell: ({ mode }) => mode },
    { header: 'SOURCE', cell: ({ source }) => source },
    { header: 'BY', cell: getName },
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
  filters: createFilters(getName),
  getEmptyMessage: (isFiltered) => `No ${isFiltered ? 'matching ' : ''}commands recorded on ${boxName}.`,
})

const formatElapsed = ({ startedAt, finishedAt }: CommandRecord): string =>
  finishedAt === null ? '-' : formatDuration(Date.parse(finishedAt) - Date.parse(startedAt))
