// The periods of quiet hours: days, midnight, joined periods and the changes for daylight saving time.
import t from 'tap'
import {
  findPeriod,
  isQuiet,
  nextStart,
} from '../../../../coordinator/boxes/schedules/quiet-hours/periods.ts'
import type { QuietHours } from '../../../../shared/api/policies.ts'
import { WEEKDAYS } from '../../../../shared/field-values.ts'

const night: QuietHours = {
  start: '22:00',
  end: '07:00',
  days: ['mon', 'tue', 'wed', 'thu', 'fri'],
  allDayDays: [],
  timezone: 'UTC',
}
const daily = (start: string, end: string, timezone: string): QuietHours => ({
  ...{ start, end, timezone },
  days: [...WEEKDAYS],
  allDayDays: [],
})

const toIso = (instant: number | null): string | null =>
  instant === null ? null : new Date(instant).toISOString().replace(':00.000Z', 'Z')

function listStarts(quietHours: QuietHours, from: string, count: number): (string | null)[] {
  const starts: (string | null)[] = []
  let at: number | null = Date.parse(from)
  while (starts.length < count && at !== null) {
    at = nextStart(quietHours, at)
    starts.push(toIso(at))
  }
  return starts
}

function describePeriod(quietHours: QuietHours, at: string): [string | null, string | null] | null {
  const period = findPeriod(quietHours, Date.parse(at))
  return period && [toIso(period.start), toIso(period.end)]
}

t.test('a period over midnight belongs to the day on which it starts', async (t) => {
  // 2026-06-05 is a Friday.
  const cases: [at: string, quiet: boolean][] = [
    ['2026-06-05T21:59:59.999Z', false],
    ['2026-06-05T22:00Z', true],
    ['2026-06-06T06:59:59.999Z', true],
    ['2026-06-06T07:00Z', false],
    ['2026-06-06T22:00Z', false],
    ['2026-06-07T23:00Z', false],
    ['2026-06-08T01:00Z', false],
    ['2026-06-08T22:00Z', true],
  ]
  for (const [at, quiet] of cases) t.equal(isQuiet(night, Date.parse(at)), quiet, at)
  t.same(listStarts(night, '2026-06-05T21:00Z', 2), ['2026-06-05T22:00Z', '2026-06-08T22:00Z'])
  t.same(listStarts(night, '2026-06-05T22:00Z', 1), ['2026-06-08T22:00Z'], 'the start itself is not after it')
  t.same(describePeriod(night, '2026-06-06T03:00Z'), ['2026-06-05T22:00Z', '2026-06-06T07:00Z'])
})

t.test('a period within a day', async (t) => {
  const lunch = daily('12:00', '13:30', 'UTC')
  t.same(describePeriod(lunch, '2026-06-05T13:29Z'), ['2026-06-05T12:00Z', '2026-06-05T13:30Z'])
  t.equal(describePeriod(lunch, '2026-06-05T13:30Z'), null)
})

t.test('days are quiet from midnight to midnight, and join the periods that they touch', async (t) => {
  const weekend: QuietHours = { ...night, allDayDays: ['sat', 'sun'] }
  // The night of Friday ends at 07:00 on a quiet Saturday. Sunday is quiet until midnight.
  t.same(describePeriod(weekend, '2026-06-07T12:00Z'), ['2026-06-05T22:00Z', '2026-06-08T00:00Z'])
  t.same(listStarts(weekend, '2026-06-05T22:00Z', 2), ['2026-06-08T22:00Z', '2026-06-09T22:00Z'])
  t.equal(isQuiet(weekend, Date.parse('2026-06-08T00:00Z')), false)

  const adjacent: QuietHours = { ...night, start: '00:00', end: '06:00', days: ['mon'], allDayDays: ['sun'] }
  t.same(describePeriod(adjacent, '2026-06-07T12:00Z'), ['2026-06-07T00:00Z', '2026-06-08T06:00Z'])
  t.same(listStarts(adjacent, '2026-06-07T12:00Z', 1), ['2026-06-14T00:00Z'])
})

t.test('hours that are always quiet have no start', async (t) => {
  const always: QuietHours = { ...night, days: [], allDayDays: [...WEEKDAYS] }
  t.equal(isQuiet(always, Date.parse('2026-06-05T12:00Z')), true)
  t.equal(nextStart(always, Date.parse('2026-06-05T12:00Z')), null)
})

t.test('the days are those of the time zone', async (t) => {
  const sunday: QuietHours = { ...night, days: [], allDayDays: ['sun'], timezone: 'Pacific/Auckland' }
  t.same(describePeriod(sunday, '2026-06-07T00:00Z'), ['2026-06-06T12:00Z', '2026-06-07T12:00Z'])
})

type Change = {
  name: string
  quietHours: QuietHours
  from: string
  starts: string[]
  /** An instant, with the period that contains it. */
  period: [at: string, start: string, end: string]
}

/** The clocks go forward at the end of March in Berlin, at the beginning of March in New York, in October on Lord Howe. */
const CHANGES: Change[] = [
  {
    name: 'Berlin, forward: the night is an hour shorter',
    quietHours: daily('22:00', '07:00', 'Europe/Berlin'),
    from: '2026-03-28T12:00Z',
    starts: ['2026-03-28T21:00Z', '2026-03-29T20:00Z'],
    period: ['2026-03-29T01:00Z', '2026-03-28T21:00Z', '2026-03-29T05:00Z'],
  },
  {
    name: 'Berlin, forward: a skipped start is at the next minute that exists',
    quietHours: daily('02:30', '05:00', 'Europe/Berlin'),
    from: '2026-03-28T12:00Z',
    starts: ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
    period: ['2026-03-29T01:00Z', '2026-03-29T01:00Z', '2026-03-29T03:00Z'],
  },
  {
    name: 'Berlin, forward: a skipped period does not start',
    quietHours: daily('02:10', '02:50', 'Europe/Berlin'),
    from: '2026-03-28T12:00Z',
    starts: ['2026-03-30T00:10Z'],
    period: ['2026-03-30T00:49Z', '2026-03-30T00:10Z', '2026-03-30T00:50Z'],
  },
  {
    name: 'Berlin, back: a repeated start happens once',
    quietHours: daily('02:30', '05:00', 'Europe/Berlin'),
    from: '2026-10-24T12:00Z',
    starts: ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
    period: ['2026-10-25T01:30Z', '2026-10-25T00:30Z', '2026-10-25T04:00Z'],
  },
  {
    name: 'Berlin, back: the quiet day has 25 hours',
    quietHours: { ...night, days: [], allDayDays: ['sun'], timezone: 'Europe/Berlin' },
    from: '2026-10-23T12:00Z',
    starts: ['2026-10-24T22:00Z', '2026-10-31T23:00Z'],
    period: ['2026-10-25T22:59Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
  },
  {
    name: 'New York, forward',
    quietHours: daily('02:30', '06:00', 'America/New_York'),
    from: '2026-03-07T12:00Z',
    starts: ['2026-03-08T07:00Z', '2026-03-09T06:30Z'],
    period: ['2026-03-08T07:30Z', '2026-03-08T07:00Z', '2026-03-08T10:00Z'],
  },
  {
    name: 'New York, back',
    quietHours: daily('01:30', '06:00', 'America/New_York'),
    from: '2026-10-31T12:00Z',
    starts: ['2026-11-01T05:30Z', '2026-11-02T06:30Z'],
    period: ['2026-11-01T06:30Z', '2026-11-01T05:30Z', '2026-11-01T11:00Z'],
  },
  {
    name: 'Lord Howe, forward by 30 minutes',
    quietHours: daily('02:15', '06:00', 'Australia/Lord_Howe'),
    from: '2026-10-03T00:00Z',
    starts: ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
    period: ['2026-10-03T15:30Z', '2026-10-03T15:30Z', '2026-10-03T19:00Z'],
  },
  {
    name: 'Lord Howe, back by 30 minutes',
    quietHours: daily('01:45', '06:00', 'Australia/Lord_Howe'),
    from: '2026-04-04T00:00Z',
    starts: ['2026-04-04T14:45Z', '2026-04-05T15:15Z'],
    period: ['2026-04-04T15:15Z', '2026-04-04T14:45Z', '2026-04-04T19:30Z'],
  },
  {
    name: 'Santiago, forward at midnight: the quiet day starts at 01:00',
    quietHours: { ...night, days: [], allDayDays: ['sun'], timezone: 'America/Santiago' },
    from: '2026-09-05T12:00Z',
    starts: ['2026-09-06T04:00Z', '2026-09-13T03:00Z'],
    period: ['2026-09-06T04:00Z', '2026-09-06T04:00Z', '2026-09-07T03:00Z'],
  },
]

for (const { name, quietHours, from, starts, period } of CHANGES)
  t.test(name, async (t) => {
    t.same(listStarts(quietHours, from, starts.length), starts)
    const [at, start, end] = period
    t.same(describePeriod(quietHours, at), [start, end])
  })

t.test('a change of the offset can join two periods', async (t) => {
  // 02:00 to 02:59 does not exist on this day, so nothing is between the two.
  const quietHours = daily('03:00', '02:00', 'Europe/Berlin')
  t.same(listStarts(quietHours, '2026-03-27T12:00Z', 3), [
    '2026-03-28T02:00Z',
    '2026-03-30T01:00Z',
    '2026-03-31T01:00Z',
  ])
  const back: QuietHours = { ...quietHours, days: ['sat', 'sun'] }
  t.same(describePeriod(back, '2026-03-29T12:00Z'), ['2026-03-28T02:00Z', '2026-03-30T00:00Z'])
})
