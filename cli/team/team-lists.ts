// The lists of the boxes and the members in the team status.
import type { TeamBox, TeamMember } from '../../shared/api/team.ts'
import { OBSERVED_STATES, ROLES } from '../../shared/field-values.ts'
import { formatDollars } from '../../shared/format-dollars.ts'
import type { List } from '../lists/list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge, formatWholeSeconds } from '../output/format.ts'

const formatAgo = (timestamp: string | null, now: number): string =>
  timestamp === null ? '-' : `${formatAge(timestamp, now)} ago`

const formatPercent = (value: number | null): string => (value === null ? '-' : `${Math.round(value)}%`)

const getOwner = ({ ownerEmail, ownerName, ownerUserId }: TeamBox): string =>
  ownerEmail ?? ownerName ?? ownerUserId

/** RFC 3339 in UTC: the order of the texts is that of the times. */
const getLastActivity = ({ lastExecAt, lastPromptAt }: TeamBox): string | null =>
  [lastExecAt, lastPromptAt]
    .filter((time) => time !== null)
    .sort()
    .at(-1) ?? null

export const TEAM_BOXES: List<TeamBox> = {
  columns: [
    { header: 'NAME', cell: ({ hostname }) => hostname },
    { header: 'OWNER', cell: getOwner },
    {
      header: 'STATE',
      cell: ({ observedState }) => ({ text: observedState, color: getStateColor(observedState) }),
    },
    { header: 'SESSIONS', cell: ({ sessions }) => String(sessions) },
    { header: 'ACTIVE', cell: (box, now) => formatAgo(getLastActivity(box), now), isRelativeTime: true },
    { header: 'TODAY', cell: ({ spendTodayMicros }) => formatDollars(spendTodayMicros) },
    { header: 'MONTH', cell: ({ spendCycleMicros }) => formatDollars(spendCycleMicros) },
    { header: 'TIER', cell: ({ tier }) => tier, isWide: true },
    { header: 'CPU', cell: ({ cpuPct }) => formatPercent(cpuPct), isWide: true },
    { header: 'MEMORY', cell: ({ memPct }) => formatPercent(memPct), isWide: true },
    {
      header: 'IDLE',
      cell: ({ idleForSec }) => (idleForSec === null ? '-' : formatWholeSeconds(idleForSec)),
      isWide: true,
      isRelativeTime: true,
    },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ hostname }) => hostname,
  filters: {
    name: { get: ({ hostname }) => hostname },
    owner: { get: getOwner },
    state: { get: ({ observedState }) => observedState, values: OBSERVED_STATES },
  },
  getEmptyMessage: (isFiltered) => (isFiltered ? 'No matching boxes.' : 'No boxes.'),
}

export const TEAM_MEMBERS: List<TeamMember> = {
  columns: [
    { header: 'EMAIL', cell: ({ email }) => email ?? '-' },
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'ROLE', cell: ({ role }) => role },
    { header: 'BOXES', cell: ({ boxes }) => String(boxes) },
    { header: 'SESSIONS', cell: ({ sessions }) => String(sessions) },
    { header: 'ACTIVE', cell: ({ lastActiveAt }, now) => formatAgo(lastActiveAt, now), isRelativeTime: true },
    { header: 'MONTH', cell: ({ spendCycleMicros }) => formatDollars(spendCycleMicros) },
    { header: 'ID', cell: ({ userId }) => userId, isWide: true },
  ],
  getId: ({ userId }) => userId,
  getName: ({ email, userId }) => email ?? userId,
  filters: {
    email: { get: ({ email }) => email },
    name: { get: ({ name }) => name },
    role: { get: ({ role }) => role, values: ROLES },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching members.' : 'No members: contractors see only their own boxes.',
}
