// Times that a user types: durations, times of day and dates, also where local clocks change.
import t from 'tap'
import { parseFutureTime, parseTime } from '../../../cli/arguments/parse-time.ts'

process.env.TZ = 'Europe/Berlin'

/** @param now ISO 8601 */
const createParser = (now: string) => (text: string) =>
  new Date(parseTime('The time', text, Date.parse(now))).toISOString()

t.test('a time of day is its most recent occurrence in local time', async (t) => {
  const parse = createParser('2026-01-31T12:00:00Z')
  t.equal(parse('03:14'), '2026-01-31T02:14:00.000Z')
  t.equal(parse('3:14:15'), '2026-01-31T02:14:15.000Z')
  t.equal(parse('13:00'), '2026-01-31T12:00:00.000Z', 'now')
  t.equal(parse('13:01'), '2026-01-30T12:01:00.000Z', 'later today is yesterday')
  t.equal(parse('yesterday 03:14'), '2026-01-30T02:14:00.000Z')
  t.equal(parse('today 13:01'), '2026-01-31T12:01:00.000Z')
})

t.test('where the clocks are set forward, a skipped time of day is the one of the day before', async (t) => {
  const parse = createParser('2026-03-29T10:00:00Z')
  t.equal(parse('02:30'), '2026-03-28T01:30:00.000Z')
  t.equal(parse('03:30'), '2026-03-29T01:30:00.000Z')
  t.equal(parse('yesterday 23:00'), '2026-03-28T22:00:00.000Z')
  const later = createParser('2026-03-30T00:10:00Z')
  t.equal(later('02:30'), '2026-03-28T01:30:00.000Z', 'also when today it is still to come')
  t.throws(() => later('yesterday 02:30'), { message: /^The time must be/ })
})

t.test('where the clocks are set back, a repeated time of day is the later one, if it is past', async (t) => {
  t.equal(createParser('2026-10-25T10:00:00Z')('02:30'), '2026-10-25T01:30:00.000Z')
  t.equal(createParser('2026-10-25T01:00:00Z')('02:30'), '2026-10-25T00:30:00.000Z')
  t.equal(createParser('2026-10-26T10:00:00Z')('yesterday 02:30'), '2026-10-25T01:30:00.000Z')
  t.equal(createParser('2026-10-25T22:30:00Z')('23:45'), '2026-10-24T21:45:00.000Z')
})

t.test('durations before now, and dates', async (t) => {
  const parse = createParser('2026-01-31T12:00:00Z')
  t.equal(parse('now'), '2026-01-31T12:00:00.000Z')
  t.equal(parse('2h'), '2026-01-31T10:00:00.000Z')
  t.equal(parse('1h30m ago'), '2026-01-31T10:30:00.000Z')
  for (const text of ['2 minutes ago', '2 minutes', '2min ago', '2mins', '120 seconds ago'])
    t.equal(parse(text), '2026-01-31T11:58:00.000Z', text)
  t.equal(parse('1 hour 30 minutes ago'), '2026-01-31T10:30:00.000Z')
  t.equal(parse('1 day and 2 hrs ago'), '2026-01-30T10:00:00.000Z')
  t.equal(parse('2026-01-31T03:14Z'), '2026-01-31T03:14:00.000Z')
  t.equal(parse('2026-01-31T03:14:00-05:00'), '2026-01-31T08:14:00.000Z')
  t.equal(parse('2026-01-31 03:14'), '2026-01-31T02:14:00.000Z')
  t.equal(parse('2024-02-29'), '2024-02-28T23:00:00.000Z')
  for (const text of ['2026-02-29', '2026-04-31 03:14', '2026-02-30T03:14:00Z'])
    t.throws(() => parse(text), { exitCode: 2, message: /^The time must be/ }, `${text} does not exist`)
  for (const text of [
    '24:00',
    '3:1',
    'tomorrow 03:14',
    '03:14Z',
    'ago',
    '03:14 ago',
    'yesterday',
    '2 months ago',
    '2 d ays',
  ])
    t.throws(() => parse(text), { exitCode: 2, message: /^The time must be a duration/ }, text)
})

t.test('a time in the future: the next time of day, a duration from now, a date', async (t) => {
  const now = Date.parse('2026-01-31T12:00:00Z')
  const parse = (text: string) => new Date(parseFutureTime('--pause-at', text, now)).toISOString()
  t.equal(parse('13:01'), '2026-01-31T12:01:00.000Z')
  t.equal(parse('13:00'), '2026-02-01T12:00:00.000Z', 'now is not in the future')
  t.equal(parse('tomorrow 13:01'), '2026-02-01T12:01:00.000Z')
  t.equal(parse('90m'), '2026-01-31T13:30:00.000Z')
  t.equal(parse('2026-02-01 03:14'), '2026-02-01T02:14:00.000Z')
  for (const text of ['now', 'today 03:14', 'yesterday 13:01', '2026-01-30', '2026-02-30', 'soon'])
    t.throws(() => parse(text), { exitCode: 2, message: /^--pause-at must be a time in the future/ }, text)
})
