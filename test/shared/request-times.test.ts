// The formats of times in requests.
import t from 'tap'
import { fileMtimeSchema } from '../../shared/api/files.ts'
import { queryInstantSchema, requestTimestampSchema } from '../../shared/api/request-times.ts'

const MOMENT = Date.UTC(2026, 0, 31, 3, 14)

const VALID: [string, number][] = [
  ['2026-01-31T03:14:00Z', MOMENT],
  ['2026-01-31T03:14Z', MOMENT],
  ['2026-01-31T03:14:00.500Z', MOMENT + 500],
  // As Python's isoformat() prints it.
  ['2026-01-31T03:14:00.123456+00:00', MOMENT + 123],
  ['2026-01-31T04:14:00+01:00', MOMENT],
  ['2026-01-30T21:44:00-05:30', MOMENT],
  [String(MOMENT / 1000), MOMENT],
  [`${MOMENT / 1000}.25`, MOMENT + 250],
  ['0', 0],
]

const INVALID = [
  '',
  'now',
  '2026-01-31',
  '2026-01-31T03:14:00',
  '2026-02-30T03:14:00Z',
  '2026-01-31T25:00:00Z',
  '2026-01-31T03:14:00+0100',
  '2026-01-31 03:14:00Z',
  '-1',
  '1e9',
  '0x10',
  '99999999999999',
  '9999-12-31T23:59:59-01:00',
]

t.test('queries and bodies accept the same formats', async (t) => {
  for (const [text, ms] of VALID) {
    t.equal(queryInstantSchema.parse(text), ms, text)
    t.equal(requestTimestampSchema.parse(text), new Date(ms).toISOString(), text)
  }
  for (const text of INVALID) {
    t.notOk(queryInstantSchema.safeParse(text).success, text)
    t.notOk(requestTimestampSchema.safeParse(text).success, text)
  }
})

t.test('a body may have epoch seconds as a number', async (t) => {
  t.equal(requestTimestampSchema.parse(MOMENT / 1000), new Date(MOMENT).toISOString())
  for (const value of [-1, 1e21, Number.NaN, MOMENT, null, true, {}])
    t.notOk(requestTimestampSchema.safeParse(value).success, String(value))
})

t.test('the time of an uploaded file accepts the same formats, and keeps nanoseconds', async (t) => {
  for (const [text, ms] of VALID) t.equal(Number(fileMtimeSchema.parse(text)) * 1000, ms, text)
  t.equal(fileMtimeSchema.parse('1769829240.123456789'), '1769829240.123456789')
  for (const text of [...INVALID, '1969-12-31T23:59:59Z'])
    t.notOk(fileMtimeSchema.safeParse(text).success, text)
})
