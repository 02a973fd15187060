// box team, billing and usage.
import t from 'tap'
import { formatBilling } from '../../cli/billing/format-billing.ts'
import { NO_BILLING } from '../../coordinator/base/no-billing.ts'
import type { Account } from '../../shared/api/account.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBox } from './run-box.ts'

type Billing = NonNullable<Account['billing']>

t.test('the balance, the runway, the plan and the payments', async (t) => {
  const billing = {
    ...NO_BILLING,
    balanceMicros: 4_200_000,
    burnMicrosPerHour: 40_000,
    runwayHours: 105,
    warnBelowHours: 24,
    trial: true,
  }
  t.equal(
    formatBilling(billing),
    [
      'balance  $4.20',
      'burn     $0.04 an hour',
      'runway   4d 9h',
      'plan     free credit',
      'payment  from the balance',
      'pay      the operator of the coordinator adds credit',
    ].join('\n'),
  )
  const format = (changes: Partial<Billing>) => formatBilling({ ...billing, ...changes })
  t.match(format({ runwayHours: 5.5 }), /^runway +5h 30m, less than 24h$/m)
  t.match(format({ runwayHours: null }), /^runway +nothing is charged now$/m)
  t.match(format({ balanceMicros: -50_000 }), /^balance +-\$0\.05$/m)
  t.match(format({ balanceMicros: 0 }), /^runway +the balance is empty$/m)
  const card = { overage: true, overdraftMicros: 25_000_000 }
  t.match(
    format({ balanceMicros: -24_000_000, ...card }),
    /^runway +the balance is empty; boxes run until \$25\.00 are owed$/m,
  )
  t.match(format({ balanceMicros: -25_000_000, ...card }), /^runway +the balance is empty$/m)
  t.match(
    format({ trial: false, ...card }),
    /^plan +paid\npayment +by card, up to \$25\.00 beyond the balance$/m,
  )
  t.match(format({ collecting: true }), /^payment +in progress$/m)
  t.match(format({ paymentFailed: true }), /^payment +failed$/m)
  t.match(
    format({ ...card, paymentFailed: true, paymentGraceUntil: '2030-01-02T00:00:00.000Z' }),
    /^payment +failed; the boxes run until 2030-01-02T00:00:00.000Z, or until \$25\.00 are owed$/m,
  )
  t.match(format({ billingUrl: 'https://example.com/billing' }), /^pay +at https:\/\/example.com\/billing$/m)
  t.match(
    format({ hold: 'cpu' }),
    /^The workspace is paused: its boxes have used all of their CPU .*\nbalance /,
  )
  t.match(formatBilling(NO_BILLING), /Billing is off/)
})

t.test('with billing on', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_BILLING: 'manual' } })
  const { url, key, api, waitForState } = coordinator
  const box = (...args: string[]) => runBox(url, args, { env: { BOXWOOD_API_KEY: key } })
  const [{ id, hostname }] = (await api('GET', '/boxes')).json.boxes
  await waitForState(id, 'running')
  await waitUntil('usage', async () => (await api('GET', '/usage')).json.totalMicros > 0)

  const [billing, usage, json, days, team, members, wrong, month] = await Promise.all([
    box('billing'),
    box('usage'),
    box('usage', '--by', 'member', '--json'),
    box('usage', '--by', 'day', '--month', '2029-12'),
    box('team', '-o', 'wide'),
    box('team', '--members', '--json'),
    box('team', '--members', '--filter', 'state=running'),
    box('usage', '--month', 'May'),
  ])
  t.match(billing, { code: 0, stdout: /^balance +\$4\.99|\$5\.00\n/ })
  t.match(usage, {
    code: 0,
    stdout: /^BOX +COST +RUNNING\n/,
    stderr: /^box: The total of \d{4}-\d\d is <?\$0\.0/,
  })
  t.match(usage.stdout, new RegExp(`^${hostname} +<?\\$0\\.\\d+ +\\d+s$`, 'm'))
  t.match(JSON.parse(json.stdout), { by: 'member', rows: [{ userId: String, micros: Number }] })
  t.equal(json.stderr, '')
  t.match(days, { code: 0, stdout: '', stderr: 'No usage in this month.\n' })
  t.match(team, {
    code: 0,
    stdout: /^NAME +OWNER +STATE +SESSIONS +ACTIVE +TODAY +MONTH +TIER +CPU +MEMORY +IDLE +ID\n/,
    stderr: /^box: 1 of 1 box running, 0 sessions, <?\$0\.\d+ today, <?\$0\.\d+ this month\.\n$/,
  })
  t.match(team.stdout, new RegExp(`^${hostname} +\\S+ +running +0 +- +<?\\$.* ${id}$`, 'm'))
  t.match(JSON.parse(members.stdout), {
    scope: 'workspace',
    members: [{ role: 'owner', boxes: 1 }],
    boxes: [{}],
  })
  t.match(wrong, { code: 2, stderr: /--filter state needs a list without --members.*email, name, role/ })
  t.match(month, { code: 2, stderr: /--month must be a month/ })

  const limited = await createLimitedKey(coordinator, { access: { boxes: 'write' } })
  const refused = await Promise.all(
    ['billing', 'usage', 'team'].map((name) => runBox(url, [name], { env: { BOXWOOD_API_KEY: limited } })),
  )
  for (const { code, stderr } of refused) {
    t.equal(code, 1)
    t.match(stderr, /read access/)
  }
})
