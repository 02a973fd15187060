// The values of policies, and quiet hours, as people type them.
import t from 'tap'
import {
  findPolicyName,
  formatPolicyValue,
  POLICY_NAMES,
  parsePolicyValue,
} from '../../../cli/policies/policy-values.ts'
import { formatQuietHours, parseQuietHours } from '../../../cli/policies/quiet-hours.ts'
import { DEFAULT_POLICY, policySchema, quietHoursSchema } from '../../../shared/api/policies.ts'

const parse = (text: string) => parseQuietHours(text, 'UTC')

t.test('quiet hours are days with a period, whole days and a time zone', async (t) => {
  const workdays = ['mon', 'tue', 'wed', 'thu', 'fri']
  t.same(parse('mon-fri 22:00-7:00 sat,Sunday all day Europe/Berlin'), {
    start: '22:00',
    end: '07:00',
    days: workdays,
    allDayDays: ['sat', 'sun'],
    timezone: 'Europe/Berlin',
  })
  t.match(parse('22:00-07:00'), { days: [...workdays, 'sat', 'sun'], timezone: 'UTC' }, 'every day')
  t.match(parse('sat-mon 01:00-02:00'), { days: ['mon', 'sat', 'sun'] })
  for (const text of [
    'mon-fri 22:00-07:00 sat,sun all-day Europe/Berlin',
    'daily 22:00-07:00 UTC',
    'mon,wed 12:00-13:00 UTC',
    'sun all-day America/New_York',
  ]) {
    t.equal(formatQuietHours(parse(text)), text)
    t.ok(quietHoursSchema.safeParse(parse(text)).success, text)
  }
  for (const text of [
    '',
    'mon',
    'mon-fri',
    'all-day',
    'mon tue 1:00-2:00',
    'Europe/Berlin',
    'x 1:00-2:00',
    '22-7',
  ])
    t.throws(() => parse(text), { exitCode: 2, message: /mon-fri 22:00-07:00/ }, text)
})

t.test('values are checked before the request', async (t) => {
  const values: [string, string, unknown, string][] = [
    ['member-spend-cap-usd', '$12.5', 12.5, '$12.5'],
    ['memberBoxLimit', '5', 5, '5'],
    ['memberMaxTier', 'pro', 'pro', 'pro'],
    ['autopausefloormin', '2h', 120, '2h'],
    ['auditRetentionDays', '30d', 30, '30 days'],
    ['shareLinks', 'off', false, 'off'],
    ['memberBoxLimit', 'off', null, 'off'],
    ['shareLinks', 'default', null, 'off'],
  ]
  for (const [typed, text, value, formatted] of values) {
    const name = findPolicyName(typed)
    const parsed = parsePolicyValue(name, text, 'UTC')
    t.equal(parsed, value, `${typed} ${text}`)
    t.equal(formatPolicyValue(name, parsed), formatted)
    if (parsed !== null) t.ok(policySchema.safeParse({ ...DEFAULT_POLICY, [name]: parsed }).success)
  }
  t.same(POLICY_NAMES, Object.keys(DEFAULT_POLICY))
  for (const [name, text] of [
    ['memberBoxLimit', '0'],
    ['memberMaxTier', 'huge'],
    ['shareLinks', 'yes'],
    ['memberSpendCapUsd', ''],
  ] as const)
    t.throws(
      () => parsePolicyValue(name, text, 'UTC'),
      { exitCode: 2, message: /must be/ },
      `${name} ${text}`,
    )
  t.throws(() => findPolicyName('boxes'), { exitCode: 2, message: /memberBoxLimit/ })
})
