// The form of the schedule of a box: when it is suspended or deleted, and its automatic snapshots.
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import { formatCommandLine } from './command-line.ts'
import { formatLocalTime } from './local-time.ts'

type Values = Record<string, string>
type Field = { name: keyof typeof FIELDS; label: string; hint: string; value: string }

const FIELDS = {
  autoPauseMin: {
    label: 'Suspend when idle for (minutes)',
    hint: '30 to 10080',
    option: '--auto-pause',
    unit: 'm',
  },
  ttlMinutes: {
    label: 'Suspend after (minutes)',
    hint: '5 to 43200, from now on',
    option: '--ttl',
    unit: 'm',
  },
  deleteAfterMinutes: {
    label: 'Delete with its files after (minutes)',
    hint: '5 to 525600, from now on',
    option: '--delete-after',
    unit: 'm',
  },
  autoSnapshotHours: {
    label: 'Snapshot every (hours)',
    hint: '1 to 168',
    option: '--auto-snapshot',
    unit: 'h',
  },
  autoSnapshotKeep: { label: 'Automatic snapshots to keep', hint: '1 to 10', option: '--keep', unit: '' },
} as const
const NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[]

/** The times that minutes from now set. They are not shown in minutes: an empty field leaves them as they are. */
const TIMES = { ttlMinutes: 'pauseAt', deleteAfterMinutes: 'deleteAt' } as const
const isTime = (name: keyof typeof FIELDS): name is keyof typeof TIMES => name in TIMES

const getValue = (box: Box, name: keyof typeof FIELDS): string =>
  isTime(name) ? '' : String(box[name] ?? '')

function describeTime(at: string | null): string {
  return at === null ? 'never' : `at ${formatLocalTime(Date.parse(at))}`
}

export const listScheduleValues = (box: Box): Field[] =>
  NAMES.map((name) => ({
    name,
    label: FIELDS[name].label,
    hint: isTime(name)
      ? `${FIELDS[name].hint}. Empty: unchanged (${describeTime(box[TIMES[name]])}); off: never`
      : FIELDS[name].hint,
    value: getValue(box, name),
  }))

export const acceptsSchedule = (values: Values): boolean =>
  NAMES.every((name) => {
    const value = (values[name] ?? '').trim()
    if (value === '') return name !== 'autoSnapshotKeep'
    return /^\d{1,6}$/.test(value) || (isTime(name) && value === 'off')
  })

const listChanges = (box: Box, values: Values) =>
  NAMES.map((name) => ({ name, value: (values[name] ?? '').trim() })).filter(
    ({ name, value }) => value !== getValue(box, name),
  )

/** Only what was changed. */
export const toScheduleRequest = (box: Box, values: Values): PatchBoxRequest =>
  Object.fromEntries(
    listChanges(box, values).map(({ name, value }) => [name, /^\d+$/.test(value) ? Number(value) : null]),
  )

export const formatScheduleCommand = (box: Box, values: Values): string =>
  formatCommandLine(
    'box',
    'set',
    box.hostname,
    ...listChanges(box, values).flatMap(({ name, value }) => [
      FIELDS[name].option,
      /^\d+$/.test(value) ? `${value}${FIELDS[name].unit}` : 'off',
    ]),
  )
